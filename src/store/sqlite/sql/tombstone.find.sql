-- read
select cast(token as text) as token from tombstones where tenant = :tenant and id = :id
