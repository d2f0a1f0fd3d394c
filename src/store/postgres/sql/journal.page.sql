-- read
-- A tenant is named where the journal was: another's has no records for it.
select journal, seq, cast(token as text) as token, at, kind, body from tape.records
where journal = :journal and seq >= :from
  and (:tenant is null or (select l.tenant from tape.leases l where l.journal = abs(:journal::bigint)) = :tenant)
order by seq limit :limit
