/** Why there is no response. After any error but {@link RequestNotSent} the server may have received the request. */

/** Nothing was sent, because no connection was established. */
export class RequestNotSent extends Error {
  /** A retry would fail the same way: the server's certificate is wrong, or its name does not exist. */
  readonly lasting: boolean;

  constructor(message: string, cause?: Error & { code?: string }) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "RequestNotSent";
    this.lasting = distrusted.test(cause?.code ?? "");
  }
}

/** Node's error codes for untrusted certificates. */
const distrusted = /CERT|ALTNAME|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_SSL|ERR_TLS/;

/** The connection was established, and no response arrived in time. */
export class ResponseTooLarge extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ResponseTooLarge";
  }
}
