-- read
select cast(token as text) as token from tape.tombstones where tenant = :tenant and id = :id
