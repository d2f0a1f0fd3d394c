import type { Plan, Service } from "../plan.ts";
import { step } from "../script.ts";
import { shellWord } from "../text.ts";
import { accountOf } from "./container.ts";

/** The service account whose tokens Pub/Sub, Cloud Tasks and Cloud Scheduler send to the handlers. */
export const caller = "tape-push";

/** The audience of these tokens. An address of Cloud Run is not known before the first deployment, so it is a name. */
export const audienceOf = (object: string): string => `https://${object}.tape-push`;

/** Cloud Run aborts a request after this time; the handler's own limit has to be shorter. */
export const timeoutOf = ({ push }: Plan): number => Math.ceil(push.withinS) + marginS;

const marginS = 10;
/** Bounds of Pub/Sub for the time in which a message must be confirmed. */
const [minAckS, maxAckS] = [60, 600];

interface Place {
  readonly project: string;
  readonly region: string;
}

/** What calls the handlers: topic and subscriptions, queue, and the daily sweep. Empty without handlers. */
export function pushLines(plan: Plan, place: Place): string[] {
  const handlers = plan.services.filter(({ role }) => role === "handler");
  if (handlers.length === 0) return [];
  const { topic, queue } = plan.push;
  return [
    ...step("let the caller of the handlers in"),
    ...handlers.map(({ object }) =>
      gcloud(place, `run services add-iam-policy-binding ${object} --region ${place.region}`, [
        ...["--member", `serviceAccount:${accountOf(place.project, caller)}`, "--role", "roles/run.invoker"],
      ]),
    ),
    ...(topic === undefined ? [] : topicLines(plan, topic, handlers, place)),
    ...(queue === undefined ? [] : queueLines(plan, queue, place)),
    ...handlers.flatMap((handler) => (handler.name === "sweep" ? sweepLines(plan, handler, place) : [])),
  ];
}

const gcloud = ({ project }: Place, command: string, args: readonly string[] = []): string =>
  ["gcloud", command, "--project", shellWord(project), ...args.map(shellWord)].join(" ");

/** Creates what does not exist yet. */
const unless = (describe: string, create: string): string[] => [`${describe} >/dev/null 2>&1 ||`, `  ${create}`];

const urlLine = ({ object }: Service, { project, region }: Place): string =>
  `url=$(gcloud run services describe ${object} --project ${project} --region ${region} --format='value(status.url)')`;

/** `projects/p/topics/t` → its own project and its last part. */
function named(path: string, fallback: Place): { readonly id: string; readonly in: Place } {
  const [, project = fallback.project] = path.split("/");
  return { id: path.split("/").at(-1)!, in: { ...fallback, project } };
}

/**
 * A wake-up that is older than ten minutes is worth nothing, so it is dropped, and no dead-letter topic collects it. Each
 * subscription gets the wake-ups of its reactor alone.
 */
function topicLines(plan: Plan, topic: string, handlers: readonly Service[], place: Place): string[] {
  const { id, in: home } = named(topic, place);
  const account = accountOf(place.project, caller);
  const ack = Math.min(maxAckS, Math.max(minAckS, timeoutOf(plan)));
  const woken = handlers.filter(({ name }) => name !== "sweep");
  return [
    ...step("topic and push subscriptions of wake-ups"),
    ...unless(gcloud(home, `pubsub topics describe ${id}`), gcloud(home, `pubsub topics create ${id}`)),
    gcloud(home, `pubsub topics add-iam-policy-binding ${id}`, [
      ...["--member", `serviceAccount:${accountOf(place.project, "tape-announcer")}`],
      ...["--role", "roles/pubsub.publisher"],
    ]),
    ...woken.flatMap((handler) => {
      const { name, object } = handler;
      const subscription = `tape-wake-${name}`;
      const push = `--push-endpoint "$url/" --push-auth-service-account ${account} --push-auth-token-audience ${audienceOf(object)}`;
      const create = gcloud(place, `pubsub subscriptions create ${subscription}`, [
        ...["--topic", id, "--topic-project", home.project, "--ack-deadline", String(ack)],
        ...["--message-retention-duration", "10m", "--expiration-period", "never"],
        ...["--message-filter", `attributes.reactor = "${name}"`],
      ]);
      return [
        urlLine(handler, place),
        ...unless(gcloud(place, `pubsub subscriptions describe ${subscription}`), `${create} ${push}`),
        `${gcloud(place, `pubsub subscriptions modify-push-config ${subscription}`)} ${push}`,
      ];
    }),
  ];
}

/** Alarms and wake-ups are repeated until a handler has succeeded. */
function queueLines(plan: Plan, queue: string, place: Place): string[] {
  const { id, in: home } = named(queue, place);
  const at = ["--location", queue.split("/")[3] ?? place.region];
  const account = accountOf(place.project, caller);
  const writers = plan.services.filter(
    ({ role, name }) => role !== "sink" && (plan.push.alarms || name === "announcer"),
  );
  return [
    ...step("queue of calls"),
    ...unless(
      gcloud(home, `tasks queues describe ${id}`, at),
      gcloud(home, `tasks queues create ${id}`, [...at, "--max-attempts", "-1", "--max-backoff", "60s"]),
    ),
    ...writers.flatMap(({ object }) => {
      const member = ["--member", `serviceAccount:${accountOf(place.project, object)}`];
      return [
        gcloud(home, `tasks queues add-iam-policy-binding ${id}`, [
          ...at,
          ...member,
          "--role",
          "roles/cloudtasks.enqueuer",
        ]),
        // A task whose call carries the token of an account may be created only by those who may act as it.
        gcloud(place, `iam service-accounts add-iam-policy-binding ${account}`, [
          ...[...member, "--role", "roles/iam.serviceAccountUser"],
        ]),
      ];
    }),
  ];
}

/** Finds what no alarm covers: a queue that was purged, or a process that stood still in the middle of a write. */
function sweepLines(plan: Plan, handler: Service, place: Place): string[] {
  const settings = [
    ...["--location", place.region, "--schedule", "17 3 * * *", "--time-zone", "Etc/UTC", "--http-method", "post"],
    ...["--oidc-service-account-email", accountOf(place.project, caller)],
    ...["--oidc-token-audience", audienceOf(handler.object)],
    ...["--attempt-deadline", `${timeoutOf(plan)}s`, "--max-retry-attempts", "5"],
  ];
  const job = (verb: "create" | "update"): string =>
    `${gcloud(place, `scheduler jobs ${verb} http tape-sweep`, settings)} --uri "$url/"`;
  return [
    ...step("a sweep each day"),
    urlLine(handler, place),
    `if ${gcloud(place, "scheduler jobs describe tape-sweep", ["--location", place.region])} >/dev/null 2>&1; then`,
    `  ${job("update")}`,
    "else",
    `  ${job("create")}`,
    "fi",
  ];
}
