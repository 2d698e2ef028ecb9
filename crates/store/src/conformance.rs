//! The suite that every store passes. A case is a small async function over a [`Harness`]; the
//! macro [`conformance!`](crate::conformance!) turns each into a test named after its store, such
//! as `sqlite::claim::two_claimers_never_share_a_task`. A bug in one store is fixed by a case that
//! all of them run.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed")]

pub mod attempts;
pub mod audit;
pub mod audit_changes;
pub mod bulk;
pub mod claim;
pub mod concurrency;
pub mod control;
pub mod dead_letters;
pub mod dependencies;
pub mod edit;
pub mod finish;
pub mod hand_off;
mod harness;
pub mod idempotency;
pub mod keys;
pub mod leader;
pub mod lossy;
pub mod narrowed_claim;
pub mod nodes;
pub mod outbox;
pub mod overlap;
pub mod quarantine;
pub mod query;
pub mod queues;
pub mod reap;
pub mod reports;
pub mod restart;
pub mod retention;
pub mod schedules;
pub mod session;
pub mod settings;
pub mod sinks;
pub mod submit;
pub mod tenants;
pub mod workflows;

pub use harness::{Backend, Harness};

/// Expands every case to a test in a module named after the store. `$backend` is an expression
/// that makes a fresh [`Backend`].
#[macro_export]
macro_rules! conformance {
    ($store:ident, $backend:expr) => {
        mod $store {
            use super::*;

            $crate::conformance_area!($backend, submit:
                a_stored_task_reads_back_as_it_was,
                a_delay_counts_from_the_stores_clock,
                a_task_without_delay_is_due_at_once,
                a_repeated_id_changes_nothing,
                a_batch_over_the_limit_is_refused_whole,
                lanes_are_bounded,
            );
            $crate::conformance_area!($backend, hand_off:
                a_due_task_goes_to_a_free_slot,
                it_stops_when_the_slots_are_taken,
                no_task_of_the_lane_is_overtaken,
                a_task_of_the_future_waits,
                a_type_the_session_does_not_serve_waits,
                a_repeated_submit_answers_as_the_first,
                a_used_offer_grants_nothing_more,
            );
            $crate::conformance_area!($backend, idempotency:
                the_same_key_and_body_give_the_first_task,
                the_same_key_with_another_body_is_refused,
                tenants_do_not_share_keys,
                a_key_is_forgotten_after_a_day,
                one_key_twice_in_a_batch_gives_one_task,
                a_repeated_id_is_answered_before_its_key,
                one_id_twice_in_a_batch_is_judged_by_each_key,
            );
            $crate::conformance_area!($backend, claim:
                nothing_is_granted_before_its_time,
                next_due_tells_when_to_come_back,
                older_tasks_come_first,
                priority_is_worth_a_minute_a_level,
                lanes_are_merged_in_order,
                crowded_lanes_are_merged_in_order,
                each_lane_tells_when_to_come_back,
                a_session_gets_only_what_it_serves,
                a_new_lane_reaches_an_open_session,
                a_claim_takes_no_more_than_it_asked_for,
                a_claim_of_large_payloads_is_bounded,
                two_claimers_never_share_a_task,
                a_repeated_claim_returns_the_same_leases,
                a_late_echo_of_a_claim_gets_nothing_new,
                an_empty_claim_may_be_repeated_until_there_is_work,
                an_unknown_session_gets_nothing,
                a_batch_over_the_limit_is_refused,
            );
            $crate::conformance_area!($backend, narrowed_claim:
                it_gets_only_what_it_asks_for,
                it_gets_nothing_that_its_session_does_not_serve,
                next_due_is_that_of_its_lanes,
                what_comes_back_in_another_lane_is_not_for_it,
                it_is_handed_only_what_it_asks_for,
                a_repeat_returns_the_batch_whatever_it_asks_for,
                an_empty_one_may_ask_for_something_else,
                it_passes_by_quarantined_tasks_of_other_lanes,
                a_quarantined_task_is_granted_alone,
            );
            $crate::conformance_area!($backend, finish:
                success_keeps_the_result,
                a_failed_attempt_waits_for_its_back_off,
                each_task_waits_by_its_own_policy,
                a_handler_may_ask_for_its_own_wait,
                the_last_failed_attempt_ends_the_task,
                fail_ends_the_task_at_once,
                a_release_charges_nothing,
                every_grant_raises_the_epoch,
                a_stale_holder_is_refused_while_its_successor_runs,
                a_repeated_finish_answers_as_the_first,
                another_outcome_after_the_end_is_refused,
                the_lease_of_another_session_cannot_be_finished,
                an_unknown_task_does_not_fail_its_batch,
                a_finish_and_the_next_claim_are_one_call,
                a_repeated_exchange_answers_as_the_first,
            );
            $crate::conformance_area!($backend, control:
                a_cancelled_task_that_waited_never_starts,
                the_holder_of_a_cancelled_task_is_refused,
                cancelling_twice_is_the_same_as_once,
                an_ended_task_cannot_be_cancelled,
                a_replay_opens_the_next_run,
                a_replay_of_a_run_happens_once,
                a_replay_may_wait_for_its_time,
                a_replay_may_change_the_payload,
                only_an_ended_task_can_be_replayed,
                a_retry_ends_the_back_off,
                orders_are_answered_one_by_one,
                one_order_may_name_a_task_twice,
            );
            $crate::conformance_area!($backend, edit:
                only_what_is_named_changes,
                a_moved_task_starts_at_its_new_time,
                a_new_delay_counts_from_the_edit,
                a_new_priority_counts,
                large_payloads_come_and_go,
                a_quarantined_task_stays_so,
                only_a_waiting_task_can_be_changed,
            );
            $crate::conformance_area!($backend, schedules:
                a_schedule_reads_back_as_it_was,
                names_belong_to_a_tenant,
                a_change_may_name_the_version_that_it_is_based_on,
                the_same_again_changes_nothing,
                one_of_a_configuration_file_refuses_requests,
                lists_go_by_name,
                changes_are_found_by_their_version,
                a_slot_is_decided_once,
                a_skipped_slot_is_recorded,
                the_last_records_are_kept,
                several_schedules_are_decided_in_one_call,
                a_pause_takes_back_what_was_not_granted,
                an_edit_goes_on_after_the_last_slot_that_was_granted,
                only_a_new_rule_forgets_what_was_missed,
                a_slot_runs_again_though_a_client_has_kept_its_task,
                a_deleted_one_takes_its_waiting_tasks_along,
                a_slot_asked_for_by_name_moves_nothing,
                a_record_outlives_its_task,
                those_of_a_tenant_are_counted,
            );
            $crate::conformance_area!($backend, overlap:
                a_slot_is_skipped_while_the_one_before_has_not_ended,
                one_slot_waits_for_the_one_before,
                slots_may_run_side_by_side,
                a_slot_takes_the_place_of_the_one_before,
                slots_of_one_call_overlap_too,
                a_workflow_is_what_a_slot_has_started,
                what_waits_for_a_withdrawn_task_is_withdrawn_too,
            );
            $crate::conformance_area!($backend, dependencies:
                a_child_waits_for_its_parent,
                a_child_is_granted_in_the_exchange_of_its_parent,
                two_parents_in_one_batch_count_twice,
                a_parent_that_has_ended_counts_at_once,
                conditions_decide,
                what_can_never_start_is_cancelled_with_all_below_it,
                every_way_to_end_counts,
                a_delay_counts_from_the_release,
                unknown_parents_are_refused,
                a_replayed_parent_does_not_count_again,
                a_blocked_task_can_be_cancelled_and_changed,
                a_parent_of_open_tasks_stays,
                parents_show_how_they_ended,
                an_outcome_stores_its_tasks_once,
                blocked_tasks_are_listed,
                edges_outlive_a_restart,
                a_thousand_parents_release_their_child_once,
            );
            $crate::conformance_area!($backend, workflows:
                it_reads_back_as_it_was,
                it_ends_with_its_last_task,
                a_failure_without_a_handler_fails_it,
                a_handled_failure_does_not,
                nothing_is_released_once_it_is_cancelled,
                tasks_of_an_outcome_wait_once_it_is_cancelled,
                cancelling_it_takes_leases_back,
                failing_fast_spares_what_handles_failures,
                a_retry_runs_what_failed_and_what_waited_for_it,
                a_replay_may_take_what_depends_on_it_along,
                replaying_a_task_opens_it_again,
                tasks_join_it_while_it_runs,
                an_outcome_adds_tasks_before_it_ends,
                the_same_key_gives_the_first_one,
                an_unknown_parent_stores_nothing,
                lists_show_the_newest_first,
                it_goes_with_its_last_task,
                a_wide_one_counts_every_task,
                a_filter_finds_its_tasks,
                those_of_a_tenant_are_counted_until_they_end,
            );
            $crate::conformance_area!($backend, session:
                ending_it_puts_its_leases_back_uncharged,
                ending_it_twice_is_the_same_as_once,
                an_ended_session_cannot_finish,
                its_name_shows_on_its_tasks,
                its_owner_is_kept,
                it_gets_only_its_tenants_tasks,
                tasks_of_another_tenant_are_unknown_to_it,
                remote_ones_are_listed_while_they_are_open,
                the_leases_of_a_dead_one_count_a_loss,
                what_it_had_not_started_counts_no_loss,
                one_that_has_beaten_again_is_not_dead,
                an_ended_one_cannot_be_opened_again,
                its_end_leaves_what_other_sessions_hold_now,
                a_beat_after_its_end_brings_nothing_back,
                those_that_serve_a_lane_are_listed,
                signs_of_life_of_ones_own_end_nothing,
                one_that_drains_is_known_to_drain_until_it_ends,
                all_are_listed_with_what_they_hold,
            );
            $crate::conformance_area!($backend, reap:
                an_overdue_lease_is_a_failed_attempt,
                the_last_overdue_attempt_ends_the_task,
                an_extended_lease_has_its_time,
                an_extension_may_shorten_the_time,
                only_its_holder_can_extend_a_lease,
                an_unacknowledged_lease_is_released,
                every_way_to_acknowledge_counts,
                a_batch_that_is_asked_for_again_starts_afresh,
                an_echo_is_not_told_to_come_back,
            );
            $crate::conformance_area!($backend, quarantine:
                one_is_granted_alone,
                a_busy_session_makes_room_for_one,
                what_comes_before_one_is_granted_without_it,
                other_sessions_pass_by_one_that_is_waited_for,
                an_idle_session_takes_one_at_once,
                a_session_that_holds_nothing_keeps_none_waiting,
                nothing_is_handed_to_its_session,
                a_session_that_has_waited_is_handed_a_whole_batch,
                a_restart_does_not_clear_one,
                a_replay_clears_one,
                it_can_be_cancelled,
            );
            $crate::conformance_area!($backend, attempts:
                failed_ones_are_kept_in_order,
                a_success_is_the_last_of_its_run,
                the_start_of_a_handler_is_told_with_its_outcome,
                no_handler_starts_before_its_grant,
                a_moved_deadline_is_not_a_start,
                lost_ones_are_kept_too,
                only_the_last_ones_are_kept,
                a_refused_outcome_is_no_attempt,
                those_of_another_tenant_are_absent,
            );
            $crate::conformance_area!($backend, reports:
                progress_shows_on_its_task,
                the_last_progress_counts_and_a_checkpoint_stays,
                progress_goes_with_its_run,
                a_log_reads_back_in_order,
                pages_of_a_log_show_all_of_it_once,
                what_is_there_is_not_added_again,
                small_pieces_become_one,
                a_piece_that_grows_is_read_on_from_within,
                of_a_log_with_many_holes_the_last_pieces_are_kept,
                only_the_end_of_a_long_log_is_kept,
                every_outcome_keeps_what_came_with_it,
                a_refused_outcome_leaves_nothing,
                a_log_ends_with_its_attempt,
                the_log_of_a_lost_attempt_is_kept,
                logs_go_with_their_attempts,
                only_its_holder_may_report,
                those_of_another_tenant_are_out_of_reach,
                a_deletion_takes_them_along,
                they_outlive_a_restart,
                a_batch_over_the_limit_is_refused,
            );
            $crate::conformance_area!($backend, dead_letters:
                the_last_failure_leads_there,
                so_does_the_last_loss,
                a_replay_leads_out_of_it,
                pages_show_all_of_it_last_failure_first,
                a_filter_narrows_it,
                labels_errors_and_workers_narrow_it_too,
                tasks_in_other_states_are_not_in_it,
                a_search_that_takes_long_goes_on,
                alike_errors_are_one_group,
                a_deleted_task_is_gone,
                the_key_of_a_deleted_task_is_free_again,
                that_of_another_tenant_is_out_of_reach,
                a_deleted_task_leaves_no_lease_behind,
            );
            $crate::conformance_area!($backend, settings:
                before_the_first_change_the_defaults_hold,
                a_change_reads_back_as_it_was,
                a_change_based_on_another_version_is_refused,
                a_repeated_change_is_made_once,
                one_of_many_changes_at_once_wins,
                the_history_is_paged_newest_first,
                only_the_last_versions_are_kept,
                they_outlive_a_restart,
                a_loss_limit_holds_at_once,
                a_loss_limit_outlives_a_restart,
            );
            $crate::conformance_area!($backend, audit:
                an_entry_tells_who_did_what_and_when,
                changes_without_an_author_are_not_written,
                one_of_many_changes_at_once_is_written,
                filters_narrow_the_log,
                a_tenant_sees_its_own_entries,
                pages_show_all_of_it_newest_first,
                old_entries_are_forgotten_page_by_page,
                numbers_are_not_given_again,
                it_outlives_a_restart,
            );
            $crate::conformance_area!($backend, audit_changes:
                pauses_are_written_once,
                settings_are_told_field_by_field,
                orders_for_tasks_are_written,
                a_deletion_tells_what_is_gone,
                each_task_that_changed_has_an_entry,
                tasks_of_another_tenant_leave_no_trace,
                payloads_are_never_told,
                changes_of_schedules_are_written,
                a_trigger_is_written,
                changes_of_workflows_are_written,
                a_replay_downstream_is_written,
                a_drain_is_written,
                a_bulk_action_has_one_entry,
                changes_of_keys_are_written,
                a_key_created_twice_at_once_has_one_entry,
                changes_of_tenants_are_written,
            );
            $crate::conformance_area!($backend, retention:
                each_outcome_has_its_own_time,
                the_time_counts_from_the_end,
                what_has_not_ended_stays,
                everything_about_a_task_goes,
                the_key_of_a_deleted_task_may_be_used_again,
                tasks_of_all_tenants_are_deleted,
                a_tenants_own_times_count_instead,
                a_shorter_time_of_a_tenant_spares_the_others,
                a_replayed_task_stays,
                a_sweep_and_a_replay_have_one_winner,
                one_call_deletes_a_bounded_number,
                one_call_looks_at_a_bounded_number,
                what_was_due_later_is_not_looked_at,
                sessions_that_ended_long_ago_are_forgotten,
                one_call_forgets_a_bounded_number_of_sessions,
            );
            $crate::conformance_area!($backend, restart:
                nothing_acknowledged_is_lost,
                leases_come_back_and_count_a_loss,
                the_epoch_goes_on,
                a_holder_from_before_is_refused,
                a_task_that_dies_with_its_workers_ends,
                waiting_tasks_keep_their_time,
                keys_are_remembered,
                a_remote_session_goes_on,
                a_remote_lease_has_its_whole_time_again,
                an_extension_outlives_it,
                a_remote_batch_has_its_whole_time_to_be_acknowledged,
                what_was_seen_of_a_session_before_ends_it_no_more,
            );
            $crate::conformance_area!($backend, query:
                pages_show_every_task_once_newest_first,
                a_page_of_large_tasks_is_shorter,
                each_term_narrows_the_list,
                states_errors_and_workers_narrow_it_too,
                since_and_until_go_by_the_first_due_time,
                failed_tasks_are_listed_by_their_due_time,
                a_task_that_waits_or_runs_is_listed_once,
                a_page_of_rare_matches_ends_and_goes_on,
                a_filter_finds_nothing_of_other_tenants,
                the_task_of_another_tenant_is_absent,
                a_hint_names_the_earliest_due_time,
                the_store_is_healthy,
                an_id_that_was_never_minted_is_unknown,
            );
            $crate::conformance_area!($backend, queues:
                nothing_of_a_paused_queue_is_granted,
                nothing_is_handed_over_in_a_paused_queue,
                a_new_type_in_a_paused_queue_waits_too,
                what_runs_in_a_paused_queue_goes_on,
                a_pause_keeps_its_beginning,
                a_pause_outlives_a_restart,
                tenants_pause_their_own_queues,
                an_unknown_queue_is_no_queue,
                a_queue_can_be_paused_before_its_first_task,
                upper_and_lower_case_are_two_queues,
                each_queue_tells_what_is_in_it,
                a_task_whose_id_came_again_is_counted_once,
                queues_are_listed_by_name,
                counting_ends_at_the_bound,
                a_place_tells_what_comes_before,
                only_a_waiting_task_has_a_place,
                a_queue_of_many_types_is_counted_in_the_first,
                a_place_among_many_types_counts_its_own,
            );
            $crate::conformance_area!($backend, keys:
                a_key_reads_back_as_it_was,
                its_time_is_the_stores_own,
                a_repeated_key_is_created_once,
                they_are_listed_by_id,
                a_revoked_key_stays_so,
                that_of_another_tenant_is_out_of_reach,
                its_uses_show,
            );
            $crate::conformance_area!($backend, tenants:
                a_record_reads_back_as_it_was,
                those_with_a_retention_of_their_own_are_known,
                the_same_again_changes_nothing,
                a_change_based_on_another_version_is_refused,
                they_are_listed_by_name,
                nothing_of_a_suspended_tenant_is_granted,
                nothing_of_a_suspended_tenant_is_handed_over,
                an_exchange_grants_nothing_of_a_suspended_tenant,
                a_new_lane_of_a_suspended_tenant_waits_too,
                a_suspension_outlives_a_restart,
                a_suspension_keeps_its_beginning,
                a_pause_and_a_suspension_are_two,
                its_tasks_are_counted_up_to_a_bound,
            );
            $crate::conformance_area!($backend, bulk:
                tasks_are_counted_as_a_list_finds_them,
                a_task_that_failed_with_its_workers_was_not_tried,
                only_ended_tasks_are_deleted,
                an_order_and_its_progress_are_one,
                every_order_can_be_carried_out,
                a_worker_that_has_lost_its_lease_changes_nothing,
            );
            $crate::conformance_area!($backend, outbox:
                without_a_sink_nothing_is_kept,
                every_change_of_a_task_has_its_event,
                what_is_handed_off_is_created_and_started,
                a_lost_worker_shows,
                a_cancel_tells_of_the_epoch_that_it_raises,
                a_workflow_and_its_children_show,
                what_comes_with_an_outcome_shows,
                a_change_that_is_refused_has_no_event,
                only_what_is_wanted_is_kept,
                tasks_of_the_system_have_none,
                queues_and_settings_show,
                slots_show,
                a_sweep_tells_of_what_it_deletes,
                pages_of_any_size_show_the_same,
                a_large_batch_is_kept_in_order,
                they_outlive_a_restart,
                tasks_are_read_by_their_ids,
                behind_the_end_is_what_comes_next,
                a_hint_follows_an_event,
                concurrent_writers_lose_none_and_keep_each_tasks_order,
            );
            $crate::conformance_area!($backend, sinks:
                one_that_is_put_again_keeps_its_place,
                one_that_is_removed_gets_nothing,
                they_are_bounded,
                each_is_served_by_one_node,
                one_that_is_not_renewed_goes_to_another_node,
                what_a_node_releases_is_free_at_once,
                a_position_never_goes_back,
                a_page_may_be_passed_in_part,
                trouble_shows_until_it_is_over,
                what_all_have_received_is_removed,
                what_no_sink_will_receive_is_removed,
                one_that_is_far_behind_is_suspended,
                one_with_many_rows_behind_is_suspended,
                a_window_keeps_events_for_its_time,
                a_reader_who_comes_back_late_is_told,
                one_without_readers_expires,
                a_place_of_another_store_is_refused,
            );
            $crate::conformance_area!($backend, leader:
                there_is_one_at_a_time,
                a_new_one_shows,
                one_that_renews_keeps_its_term,
                one_that_is_silent_is_replaced,
                a_lead_that_ended_is_taken_anew_under_another_term,
                resigning_makes_room_at_once,
                of_many_candidates_one_wins,
            );
            $crate::conformance_area!($backend, nodes:
                one_that_joins_is_listed_until_it_leaves,
                joining_again_changes_what_it_says,
                who_joins_and_leaves_shows,
                signs_of_life_show,
                one_that_is_silent_for_a_day_is_forgotten,
            );
            $crate::conformance_area!($backend, concurrency:
                many_claimers_run_every_task_once,
                one_key_from_many_callers_stores_one_task,
                a_cancel_and_a_finish_have_one_winner,
                a_dropped_call_leaves_nothing_behind,
            );
        }
    };
}

/// One area of the suite; see [`conformance!`](crate::conformance!).
#[macro_export]
macro_rules! conformance_area {
    ($backend:expr, $area:ident: $($case:ident),* $(,)?) => {
        mod $area {
            use super::*;

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let harness = $crate::conformance::Harness::new(Box::new($backend));
                    $crate::conformance::$area::$case(harness).await;
                }
            )*
        }
    };
}
