-- read
-- Up to :edge and no further: of one tenant a look passes over a bounded number of records.
select r.id, r.journal, r.seq, cast(r.token as text) as token, r.at, r.kind, r.body from records r
where r.id > :after and r.id <= :edge and (:tenant is null or exists (
  select 1 from leases l where l.journal = abs(r.journal) and l.tenant = :tenant))
order by r.id limit :limit
