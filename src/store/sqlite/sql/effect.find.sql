-- read
select e.*, cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce,
  e.send_until + :at - :steady as send_until from effects e
where e.run = :run and e.pos = :pos and e.sub = :sub and e.tenant = :tenant
