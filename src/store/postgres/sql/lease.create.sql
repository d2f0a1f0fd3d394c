-- unfenced: the row of a journal that comes to be in the same transaction; nobody can hold it yet
insert into tape.leases(journal, kind, tenant, run, workflow, token, ttl_ms, expires_at, acquired_at, renewed_at, progress_at, wants, due_at)
values (:journal, :kind, coalesce(:tenant, (select s.tenant from tape.leases s where s.journal = :source)), :run, :workflow, :token,
        0, tape.now_ms(), tape.now_ms(), tape.now_ms(), tape.now_ms(), :wants, tape.now_ms())
