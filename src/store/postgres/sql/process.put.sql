-- unfenced: what a process says of itself, for people who look; nobody but itself writes its row
insert into tape.processes(tenant, owner, label, at, body) values (:tenant, :owner, :label, tape.now_ms(), :body)
on conflict(tenant, owner) do update set label = excluded.label, at = excluded.at, body = excluded.body
