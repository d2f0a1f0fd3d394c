// `durable-tape/push`: handlers for hosts that run only during a request.
export type { ReactCounts, ReactOptions } from "../host/on-demand.ts";
export type { SweepCounts, SweepOptions } from "../host/serverless.ts";
export { type LambdaEvent, type LambdaResponse, toLambda, toNode } from "../push/adapters.ts";
export { type AnnounceOptions, announce } from "../push/announce.ts";
export type { PushEvent } from "../push/decode.ts";
export { type PushApp, type PushOptions, pushHandler } from "../push/handler.ts";
export {
  type EventAction,
  type ReceiverApp,
  type ReceiverOptions,
  receiver,
  type SignalAction,
  type StartAction,
} from "../push/receiver.ts";
export type { Handler } from "../push/request.ts";
export { type GoogleOidcOptions, googleOidc } from "../push/verify/google.ts";
export { type SharedSecretOptions, sharedSecret, unverified } from "../push/verify/secret.ts";
export type { Verdict, Verify } from "../push/verify/verify.ts";
export { type WebhookSignatureOptions, webhookSignature } from "../push/verify/webhook.ts";
export type { Waker } from "../push/waker.ts";
export { type CloudTasksWakerOptions, cloudTasksWaker } from "../push/wakers/cloud-tasks.ts";
export {
  type NatsWakerOptions,
  natsWaker,
  natsWakeUpConsumer,
  natsWakeUpStream,
  runWakeUps,
  type WakeUpPublisher,
} from "../push/wakers/nats.ts";
export { type PubsubWakerOptions, pubsubWaker } from "../push/wakers/pubsub.ts";
export { type WebhookWakerOptions, webhookWaker } from "../push/wakers/webhook.ts";
