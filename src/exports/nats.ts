export { type NatsConnection, type NatsSinkOptions, natsSink } from "../events/sinks/nats.ts";
