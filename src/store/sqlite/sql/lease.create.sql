-- unfenced: the row of a journal that comes to be in the same transaction; nobody can hold it yet
insert into leases(journal, kind, tenant, run, workflow, token, ttl_ms, expires_at, acquired_at, renewed_at, progress_at, wants, due_at)
values (:journal, :kind, coalesce(:tenant, (select s.tenant from leases s where s.journal = :source)), :run, :workflow, :token,
        0, :now, :now, :now, :now, :wants, :now)
