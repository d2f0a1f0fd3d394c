-- unfenced: the store's own journal, number 1; the row lock on meta makes its writers queue
with m as materialized (select 1 from tape.meta for update)
insert into tape.records(journal, seq, token, stamp, at, kind, body)
select 1, p.seq + 1, 0, greatest(tape.stamp(), p.stamp), tape.now_ms(), :kind, :body
from m cross join lateral (select seq, stamp from tape.records where journal = 1 order by seq desc limit 1) p
