-- fenced
-- record.append, one for each of many journals. The stamp as there.
insert into tape.records(journal, seq, token, stamp, at, kind, body)
select i.journal, i.seq, i.token,
  greatest((select pg_current_xact_id()::text::bigint + m.feed_offset from tape.meta m), p.stamp), tape.now_ms(), :kind, i.body
from unnest(:journals::bigint[], :seqs::bigint[], :tokens::bigint[], string_to_array(:bodies, chr(31)))
  as i(journal, seq, token, body)
cross join lateral (select p.stamp from tape.records p where p.journal = i.journal and p.seq = i.seq - 1 limit 1) p
