-- fenced
-- The first record of a journal that the fenced write opens.
insert into tape.records(journal, seq, token, stamp, at, kind, body)
values (:journal, :seq, :token, tape.stamp(), tape.now_ms(), :kind, :body)
