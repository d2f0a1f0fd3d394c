/** Why an exchange gave no answer. Any other error than {@link RequestNotSent} leaves open whether the server heard. */

/** It is certain that nothing has left: the connection never stood. */
export class RequestNotSent extends Error {
  /** Another try would fail the same way: the other side is not who it says, or not known at all. */
  readonly lasting: boolean;

  constructor(message: string, cause?: Error & { code?: string }) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "RequestNotSent";
    this.lasting = distrusted.test(cause?.code ?? "");
  }
}

/** What Node calls certificates that it does not believe. */
const distrusted = /CERT|ALTNAME|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_SSL|ERR_TLS/;

/** The connection stood, and no answer came in time. */
export class ResponseTooLarge extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ResponseTooLarge";
  }
}
