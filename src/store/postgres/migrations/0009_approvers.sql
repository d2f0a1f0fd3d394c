-- Who may answer a gate, and the notes that those who may have sent: no other signal resolves it.
alter table tape.gates add column approvers text;
alter table tape.gates add column approvals text not null default ',';
