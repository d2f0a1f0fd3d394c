-- read
select e.*, cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce from tape.effects e
where e.run = :run and e.pos = :pos and e.sub = :sub and e.tenant is not distinct from :tenant
