-- read
-- A tenant is named where the journal was: another's has no records for it.
select journal, seq, cast(token as text) as token, at, kind, body from records
where journal = :journal and seq >= :from
  and (:tenant is null or (select l.tenant from leases l where l.journal = abs(:journal)) = :tenant)
order by seq limit :limit
