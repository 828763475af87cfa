/** How the network fails for one call. A text asks for its fault by `[[fault:name ms nonce]]`; a test can arm one too. */

export type Fault =
  /** An answer instead of the call, of which nothing is made. */
  | {
      readonly kind: 'refuse';
      readonly code: number;
      readonly description: string;
      readonly parameters?: Readonly<Record<string, number>>;
    }
  /** `ms`: absent, for ever. */
  | { readonly kind: 'delay'; readonly ms: number }
  | { readonly kind: 'drop_before' | 'silent_before' | 'drop_after' | 'silent_after' | 'error_after' }
  /** Answers an error, and makes the message afterwards. */
  | { readonly kind: 'late'; readonly ms: number }
  /** The album's first messages are out, then an error. */
  | { readonly kind: 'partial'; readonly out: number }
  /** `run` is called, before the call is taken or after it, and nobody answers. */
  | { readonly kind: 'met'; readonly run: () => void; readonly isTaken: boolean };

let made = 0;
export const faultText = (name: string, ms = 0): string => {
  made += 1;
  return `Hi [[fault:${name} ${ms} ${made}]]`;
};

export const faultOf = (text: string, struck: Set<string>): Fault | null => {
  const [whole, name, said] = /\[\[fault:(\w+) (\d+) \d+\]\]/.exec(text) ?? [];
  if (whole === undefined || struck.has(whole)) return null;
  struck.add(whole);
  const ms = Number(said);
  const seconds = Math.max(1, Math.ceil(ms / 1_000));
  switch (name) {
    case 'rate_limit': {
      const description = `Too Many Requests: retry after ${seconds}`;
      return { kind: 'refuse', code: 429, description, parameters: { retry_after: seconds } };
    }
    case 'reject':
      return { kind: 'refuse', code: 400, description: "Bad Request: can't parse entities: unexpected end" };
    case 'token_death':
      return { kind: 'refuse', code: 401, description: 'Unauthorized' };
    case 'timeout_before':
      return { kind: 'silent_before' };
    case 'timeout_after':
      return { kind: 'silent_after' };
    case 'error_after':
      return { kind: 'error_after' };
    case 'late':
      return { kind: 'late', ms };
    default:
      throw new Error(`no such fault: ${name}`);
  }
};
