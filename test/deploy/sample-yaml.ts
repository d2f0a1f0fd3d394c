/** A configuration that uses everything: secrets, plain variables, a custom reactor, a sink, KEDA, egress, a monitor. */
export const sample = `project: { name: shop }
agent: { runner_factory: "./app/agent.ts#buildRunner" }
tape:
  drain_s: 24.5
  store: { url: "postgres://tape:\${DB_PASSWORD}@\${DB_HOST:-localhost}/orders?connections=4" }
  server: { bootstrap_token: "\${ADMIN_TOKEN}" }
  reactors:
    reap-aged: { handler: "./app/reap.ts#reap" }
  events:
    sinks:
      billing_eu: { kind: webhook, url: "https://hooks.example", secrets: ["\${HOOK_SECRET}"] }
      audit: { kind: log, enabled: false }
  deploy:
    image: europe-docker.pkg.dev/p/tape/app:\${GIT_SHA}
    secrets: { DB_PASSWORD: tape-db-password, ADMIN_TOKEN: tape-admin, HOOK_SECRET: tape-hook }
    env: { DB_HOST: db.internal, GREETING: "a $5 \\"note\\"" }
    reactors:
      outbox: { min: 2, max: 10, scale: lag, egress: ["203.0.113.0/24:443", "169.254.0.0/16:80"] }
      timers: { max: 1 }
    kubernetes: { namespace: shop, monitor: true, prometheus: "http://prometheus.monitoring:9090" }
    gcp: { project: my-project, region: europe-west1, sql: "my-project:europe-west1:orders", network: main }
`;
