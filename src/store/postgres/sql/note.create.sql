-- unfenced: see note.count, whose row lock makes the writers of one inbox queue
insert into tape.records(journal, seq, token, stamp, at, kind, body)
values (-:journal, :seq, 0, greatest(tape.stamp(), coalesce((select p.stamp from tape.records p where p.journal = -:journal and p.seq = :seq - 1), 0)),
  tape.now_ms(), :kind, :body)
