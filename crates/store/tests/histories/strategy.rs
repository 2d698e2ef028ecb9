//! How steps are drawn: small name spaces, so that they meet, and the common thing more often than
//! the odd one, so that histories come far.

use std::time::Duration;

use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest_state_machine::ReferenceStateMachine;

use crate::step::{
    ClaimStep, DecideStep, EditStep, FilterStep, FinishStep, How, LogStep, OpenStep, ReadStep,
    ReplayStep, ReportStep, ScheduleOrder, ScheduleStep, Step, TaskStep, What, Which, Who, Why,
    WorkflowOrder,
};

/// Steps mean something in every state, so nothing needs to be known to draw the next one.
pub(crate) struct Steps;

thread_local! {
    static STEP: BoxedStrategy<Step> = step();
}

impl ReferenceStateMachine for Steps {
    type State = ();
    type Transition = Step;

    fn init_state() -> BoxedStrategy<()> {
        Just(()).boxed()
    }

    fn transitions((): &()) -> BoxedStrategy<Step> {
        STEP.with(Clone::clone)
    }

    fn apply((): (), _: &Step) {}
}

fn step() -> BoxedStrategy<Step> {
    prop_oneof![
        13 => submit(),
        5 => open().prop_map(Step::Open),
        28 => exchange(),
        5 => beat(),
        13 => (holder(), why()).prop_map(|(who, why)| Step::End { who, why }),
        3 => (holder(), vec((which(), seconds(&[0, 1, 60])), 1..3))
            .prop_map(|(who, leases)| Step::Extend { who, leases }),
        6 => (holder(), vec(report(), 1..4)).prop_map(|(who, items)| Step::Report { who, items }),
        6 => (seconds(&[0, 1, 30]), any::<u64>())
            .prop_map(|(silence, entropy)| Step::Reap { silence, entropy }),
        3 => orders().prop_map(|(tasks, foreign)| Step::Cancel { tasks, foreign }),
        6 => replay(),
        3 => orders().prop_map(|(tasks, foreign)| Step::Retry { tasks, foreign }),
        3 => edit().prop_map(Step::Edit),
        4 => (weighted_bool(), weighted_bool(), weighted_bool())
            .prop_map(|(queue, tenant, pause)| Step::Pause { queue, tenant, pause }),
        3 => sweep(),
        2 => (weighted(0.7, 1..5_u32), select(vec![0, 0, 0, 1]))
            .prop_map(|(loss_limit, behind)| Step::Settings { loss_limit, behind }),
        5 => orders().prop_map(|(tasks, foreign)| Step::Delete { tasks, foreign }),
        6 => workflow(),
        6 => (0..3_u8, workflow_order(), weighted_bool())
            .prop_map(|(back, order, foreign)| Step::OrderWorkflow { back, order, foreign }),
        2 => (what(), weighted_bool())
            .prop_map(|(what, foreign)| Step::ReplayDownstream { what, foreign }),
        6 => Just(Step::Cascade),
        12 => schedule(),
        1 => any::<bool>().prop_map(|deleted| Step::Listen { deleted }),
        12 => read().prop_map(Step::Read),
        9 => (0..4_u8).prop_map(|back| Step::Again { back }),
        9 => advance().prop_map(Step::Advance),
        4 => Just(Step::Crash),
    ]
    .boxed()
}

fn who() -> impl Strategy<Value = Who> {
    prop_oneof![
        16 => (0..3_u8).prop_map(Who::Open),
        3 => (0..6_u8).prop_map(Who::Any),
        1 => Just(Who::Unknown),
    ]
}

fn holder() -> impl Strategy<Value = Who> {
    prop_oneof![3 => (0..3_u8).prop_map(Who::Busy), 1 => who()]
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        10 => (0..6_u8).prop_map(What::Fit),
        9 => (0..6_u8).prop_map(What::Known),
        1 => Just(What::Nothing),
    ]
}

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![
        14 => (0..3_u8).prop_map(Which::Held),
        4 => (0..4_u8).prop_map(Which::Past),
        2 => (0..3_u8).prop_map(Which::Foreign),
        1 => what().prop_map(Which::MadeUp),
    ]
}

fn why() -> impl Strategy<Value = Why> {
    prop_oneof![2 => Just(Why::Closed), 10 => Just(Why::Died), 2 => Just(Why::DiedBefore)]
}

fn seconds(choice: &[u64]) -> impl Strategy<Value = Duration> + use<> {
    select(choice.to_vec()).prop_map(Duration::from_secs)
}

fn advance() -> impl Strategy<Value = Duration> {
    let day = 24 * 60 * 60 * 1000;
    select(vec![1, 1, 1000, 1000, 5000, 15_000, 15_000, 61_000, 61_000, 1_900_000, day])
        .prop_map(Duration::from_millis)
}

fn claim() -> impl Strategy<Value = ClaimStep> {
    let back = prop_oneof![14 => Just(0), 4 => Just(1), 2 => 2..4_u8];
    let only = (weighted(0.1, any::<bool>()), weighted(0.1, 0..3_u8));
    (back, 0..5_usize, only).prop_map(|(back, max, (queue, task_type))| ClaimStep {
        back,
        max,
        queue,
        task_type,
    })
}

fn task() -> impl Strategy<Value = TaskStep> {
    let place = (weighted(0.1, what()), weighted_bool(), weighted_bool(), 0..3_u8);
    let order = (select(vec![0, 5, 5, 9]), select(vec![0, 0, 0, 0, 1, 30]), 0..3_u32);
    let policy = (0..4_u8, weighted(0.4, seconds(&[1, 5])), any::<bool>());
    let key = weighted(0.35, (0..3_u8, select(vec![0, 0, 0, 1])));
    let parent = || weighted(0.2, (what(), 0..3_u8));
    let links = ([parent(), parent()], weighted(0.1, 0..3_u8));
    (place, order, policy, key, links).prop_map(|(place, order, policy, key, links)| {
        let (parents, joins) = links;
        let (again, tenant, queue, task_type) = place;
        let (priority, delay, retries) = order;
        let (back_off, timeout, large) = policy;
        let delay = Duration::from_secs(delay);
        TaskStep {
            again,
            tenant,
            queue,
            task_type,
            priority,
            delay,
            retries,
            back_off,
            timeout,
            large,
            key,
            parents,
            joins,
        }
    })
}

fn workflow() -> impl Strategy<Value = Step> {
    let key = weighted(0.2, (0..2_u8, select(vec![0, 0, 1])));
    (vec((task(), any::<u8>()), 1..4), any::<bool>(), key)
        .prop_map(|(tasks, fail_fast, key)| Step::Workflow { tasks, fail_fast, key })
}

fn schedule() -> impl Strategy<Value = Step> {
    let slot = || weighted(0.6, (0..70_u8, prop_oneof![1 => Just(0), 8 => 1..4_u8, 3 => Just(4)]));
    let decide = (0..4_u8, [slot(), slot(), slot()], select(vec![0, 0, 0, 0, 1]));
    let decide = (decide, prop_oneof![5 => Just(true), 1 => Just(false)]);
    let decide = decide.prop_map(|((overlap, slots, behind), moves)| {
        ScheduleOrder::Decide(DecideStep { overlap, slots, behind, moves })
    });
    let order = prop_oneof![
        5 => (1..4_u8, weighted_bool(), 0..6_u8)
            .prop_map(|(rule, paused, expected)| ScheduleOrder::Put { rule, paused, expected }),
        1 => any::<bool>().prop_map(|pause| ScheduleOrder::Switch { pause }),
        1 => (0..6_u8).prop_map(|expected| ScheduleOrder::Delete { expected }),
        14 => decide,
        1 => Just(ScheduleOrder::Changed),
    ];
    (weighted_bool(), order)
        .prop_map(|(other, order)| Step::Schedule(ScheduleStep { other, order }))
}

fn workflow_order() -> impl Strategy<Value = WorkflowOrder> {
    prop_oneof![
        1 => Just(WorkflowOrder::Cancel),
        4 => Just(WorkflowOrder::Retry),
        1 => Just(WorkflowOrder::Graph),
    ]
}

/// Seldom true.
fn weighted_bool() -> impl Strategy<Value = bool> {
    prop_oneof![4 => Just(false), 1 => Just(true)]
}

fn submit() -> impl Strategy<Value = Step> {
    let offer = weighted(0.4, (who(), claim()));
    (vec(task(), 1..4), offer).prop_map(|(tasks, offer)| Step::Submit { tasks, offer })
}

fn open() -> impl Strategy<Value = OpenStep> {
    let again = weighted(0.15, (0..6_u8).prop_map(Who::Any));
    let bound = weighted(0.1, any::<bool>());
    let rest = (any::<bool>(), bound, prop_oneof![4 => Just(true), 1 => Just(false)]);
    (again, rest, weighted_bool()).prop_map(|(again, (remote, bound, all_types), one_queue)| {
        OpenStep { again, remote, bound, all_types, one_queue }
    })
}

fn beat() -> impl Strategy<Value = Step> {
    (holder(), vec(0..3_u8, 0..3), vec(which(), 0..3))
        .prop_map(|(who, received, unstarted)| Step::Heartbeat { who, received, unstarted })
}

fn finish() -> impl Strategy<Value = FinishStep> {
    let retry = (of(seconds(&[0, 0, 3])), any::<u64>());
    let how = prop_oneof![
        3 => Just(How::Success),
        4 => retry.prop_map(|(after, entropy)| How::Retry { after, entropy }),
        2 => Just(How::Fail),
        2 => Just(How::Release),
    ];
    let then = prop_oneof![4 => Just(0), 1 => 1..3_u8];
    (which(), how, of(log()), then).prop_map(|(which, how, log, then)| FinishStep {
        which,
        how,
        log,
        then,
    })
}

fn log() -> impl Strategy<Value = LogStep> {
    (0..9_u8, 0..6_u8, weighted_bool()).prop_map(|(start, length, large)| LogStep {
        start,
        length,
        large,
    })
}

fn report() -> impl Strategy<Value = ReportStep> {
    let progress = of((0..5_u8, weighted_bool()));
    (which(), progress, weighted(0.8, log())).prop_map(|(which, progress, log)| ReportStep {
        which,
        progress,
        log,
    })
}

fn exchange() -> impl Strategy<Value = Step> {
    let finishing = (holder(), vec(finish(), 1..4), weighted(0.6, claim()));
    let claiming = (who(), Just(Vec::new()), claim().prop_map(Some));
    prop_oneof![2 => finishing, 3 => claiming].prop_map(|(who, finishes, claim)| Step::Exchange {
        who,
        finishes,
        claim,
    })
}

fn orders() -> impl Strategy<Value = (Vec<What>, bool)> {
    (vec(what(), 1..4), weighted_bool())
}

fn replay() -> impl Strategy<Value = Step> {
    let ahead = prop_oneof![8 => Just(0), 1 => Just(-1), 1 => Just(1)];
    let one = (what(), ahead, weighted(0.3, select(vec![-5, 0, 5])));
    let one = one.prop_map(|(what, ahead, run_at)| ReplayStep { what, ahead, run_at });
    (vec(one, 1..4), weighted(0.3, any::<bool>()), weighted_bool())
        .prop_map(|(tasks, payload, foreign)| Step::Replay { tasks, payload, foreign })
}

fn edit() -> impl Strategy<Value = EditStep> {
    let order = (weighted(0.3, select(vec![0, 5, 9])), weighted(0.3, select(vec![-5, 0, 5])));
    let rest = (weighted(0.3, 0..3_u32), weighted(0.3, any::<bool>()));
    (what(), weighted_bool(), order, rest).prop_map(|(what, foreign, order, rest)| {
        let ((priority, run_at), (retries, large)) = (order, rest);
        EditStep { what, foreign, priority, run_at, retries, large }
    })
}

fn sweep() -> impl Strategy<Value = Step> {
    let ago = || weighted(0.7, seconds(&[0, 1, 61]));
    let by_outcome = || [ago(), ago(), ago()];
    (by_outcome(), weighted(0.3, by_outcome()), weighted(0.1, what()))
        .prop_map(|(ago, own, after)| Step::Sweep { ago, own, after })
}

fn filter() -> impl Strategy<Value = FilterStep> {
    let lane = (weighted_bool(), weighted(0.2, any::<bool>()), weighted(0.2, 0..3_u8));
    let time = (weighted(0.2, 0..70_u8), weighted(0.2, 0..70_u8));
    // None, only FAILED, or any.
    let statuses = prop_oneof![4 => Just(0_u8), 4 => Just(1 << 4), 2 => 1..64_u8];
    let error = (weighted(0.2, 0..4_u8), weighted(0.15, 0..4_u8));
    let rest = (weighted(0.15, 0..3_u8), weighted(0.15, 0..4_u8), weighted(0.6, 0..6_u8));
    (lane, time, statuses, error, rest).prop_map(|(lane, time, statuses, error, rest)| {
        let (tenant, queue, task_type) = lane;
        let ((since, until), (of_group, says), (label, worker, aim)) = (time, error, rest);
        FilterStep {
            aim,
            tenant,
            statuses,
            queue,
            task_type,
            of_group,
            since,
            until,
            label,
            says,
            worker,
        }
    })
}

fn logs() -> impl Strategy<Value = ReadStep> {
    let after = prop_oneof![2 => Just((0, 0)), 1 => (0..4_u8, 0..9_u8)];
    (what(), weighted_bool(), weighted(0.3, 0..4_u8), after, 0..9_u8).prop_map(
        |(what, tenant, epoch, after, limit)| ReadStep::Logs { what, tenant, epoch, after, limit },
    )
}

fn read() -> impl Strategy<Value = ReadStep> {
    prop_oneof![
        (what(), weighted_bool()).prop_map(|(what, tenant)| ReadStep::Get { what, tenant }),
        (what(), weighted_bool()).prop_map(|(what, tenant)| ReadStep::Attempts { what, tenant }),
        logs(),
        (filter(), weighted(0.3, what()), 0..4_u32)
            .prop_map(|(which, before, limit)| ReadStep::List { which, before, limit }),
        (filter(), 0..4_u32, weighted_bool()).prop_map(|(which, limit, skip)| ReadStep::Dead {
            which,
            limit,
            skip
        }),
        filter().prop_map(|which| ReadStep::Groups { which }),
        filter().prop_map(|which| ReadStep::Count { which }),
        (weighted_bool(), weighted_bool())
            .prop_map(|(queue, tenant)| ReadStep::Queue { queue, tenant }),
        (what(), weighted_bool())
            .prop_map(|(what, tenant)| ReadStep::QueuePosition { what, tenant }),
        what().prop_map(|what| ReadStep::Parents { what }),
    ]
}
