-- fenced
-- Nothing is inserted unless the predecessor is there; a second writer of seq hits the unique index. The stamp never
-- falls along a journal, although a transaction may have got its xid before its predecessor's.
insert into tape.records(journal, seq, token, stamp, at, kind, body)
select :journal, :seq, :token, greatest(tape.stamp(), p.stamp), tape.now_ms(), :kind, :body
from tape.records p where p.journal = :journal and p.seq = :seq - 1
