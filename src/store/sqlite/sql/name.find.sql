-- read
select journal from names where tenant = :tenant and name = :name
