-- unfenced: by the transaction that claimed the key
update repeats set answer = :answer where tenant = :tenant and key = :key
