-- read
-- THE FENCE (see src/model/fence.ts). Runs inside BEGIN IMMEDIATE, which no takeover can overlap: what it reads holds
-- until our commit. Answers only if tenant, token, nonce and head are the writer's own.
select l.kind, l.tenant, l.run, l.notes from leases l
where l.journal = :journal and l.tenant = :tenant and l.token = :token and l.nonce = :nonce and l.doomed = 0
  and exists (select 1 from records p where p.journal = :journal and p.seq = :after)
  and not exists (select 1 from records s where s.journal = :journal and s.seq = :after + 1)
