-- unfenced: what a process says of itself, for people who look; nobody but itself writes its row
insert into processes(tenant, owner, label, at, body) values (:tenant, :owner, :label, :at, :body)
on conflict(tenant, owner) do update set label = excluded.label, at = excluded.at, body = excluded.body
