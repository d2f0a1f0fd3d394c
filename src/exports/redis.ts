export { type RedisClient, type RedisSinkOptions, type RedisTransaction, redisSink } from "../events/sinks/redis.ts";
