-- Leases that a cancel has taken back, for the nodes through which their sessions claim: a node collects
-- the rows of its sessions, and tells the workers. Most of the time the table is empty.
CREATE TABLE duly.revocation (
    session uuid    NOT NULL,
    task    uuid    NOT NULL,
    epoch   integer NOT NULL,
    PRIMARY KEY (session, task)
);
