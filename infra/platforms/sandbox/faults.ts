/**
 * Faults that a caller scripts, in the text or in the account's name.
 *
 *     Good morning [[sandbox:rate_limit once 2s]]      a directive: fault, how often per target, how long
 *     rate-limit-once-acme                             an account: the same words with hyphens before its own name
 *
 * | fault            | what the network does                                               | outcome             |
 * |------------------|---------------------------------------------------------------------|---------------------|
 * | `rate_limit`     | refuses the first call of a try and names a time (default 2 s ahead) | rate_limited        |
 * | `reject`         | refuses the content for good                                        | failed              |
 * | `duplicate`      | says that it has the content already                                | failed              |
 * | `token_death`    | no longer accepts the connection                                    | failed              |
 * | `down`           | does not answer before the boundary, nor when reconciling           | deferred, undecided |
 * | `slow`           | prepares the post for the time given (default 5 s)                  | published           |
 * | `hang`           | the worker hangs between the boundary append and the call           | published, nothing_sent |
 * | `timeout_before` | takes the call, makes nothing, never answers                        | unknown, absent     |
 * | `timeout_after`  | makes the post, never answers                                       | unknown, present    |
 * | `error_before`   | answers 500 and made nothing                                        | unknown, absent     |
 * | `error_after`    | answers 500 and made the post                                       | unknown, present    |
 * | `late`           | answers 504; the post appears after the time given (default 5 s)    | unknown, then present |
 * | `unreadable`     | does not answer when reconciling                                    | undecided           |
 *
 * On networks that look at a post before they show it (facebook, tiktok, youtube); elsewhere these are plain text:
 *
 * | fault               | what the network does                                            | outcome             |
 * |---------------------|------------------------------------------------------------------|---------------------|
 * | `processing`        | accepts the post, and shows it after the time given (default 5 s) | accepted, present   |
 * | `processing_failed` | accepts the post, and refuses it after the time given (default 5 s) | accepted, failed  |
 * | `processing_never`  | accepts the post, and never shows it                             | accepted, processing |
 *
 * On networks that fetch a picture from addresses alone that are the operator's by a file there (tiktok); elsewhere plain text:
 *
 * | fault              | what the network does                                             | outcome             |
 * |--------------------|-------------------------------------------------------------------|---------------------|
 * | `address_unproven` | does not know the address of the picture as the operator's         | deferred            |
 *
 * Faults of requests for figures; in the text for one post, in the account's name for all posts of the account:
 *
 * | fault                 | what the network does                                                              |
 * |-----------------------|------------------------------------------------------------------------------------|
 * | `removed`             | no longer has the post, from the given age on (`3d`; none given: from the beginning) |
 * | `metrics_nonsense`    | reports negatives, 1e308 and words for counts                                      |
 * | `metrics_down`        | does not answer                                                                    |
 * | `metrics_rate_limit`  | refuses, and names a time by the caller's clock (default 2 s ahead)                |
 * | `metrics_token_death` | no longer accepts the connection; `token_death` of an account does the same        |
 *
 * Faults of a post that was handed to the network's own scheduler; the faults of a call strike at the hand-over too, and
 * after `late` the network has the scheduled post that much later:
 *
 * | fault                 | what the network does                                                              |
 * |-----------------------|------------------------------------------------------------------------------------|
 * | `native_early`        | publishes the post the given time after the hand-over (default 1 s)                |
 * | `native_never`        | keeps the post scheduled for ever                                                  |
 * | `native_failed`       | cannot publish the post at its time                                                |
 * | `undo_timeout_before` | takes the call that deletes the post, does nothing, never answers                  |
 * | `undo_timeout_after`  | deletes the post, never answers                                                    |
 *
 * Faults of questions about an account, in its name alone; `rate_limit`, `down` and `token_death` of an account strike there too:
 *
 * | fault                 | what the network does                                                              |
 * |-----------------------|------------------------------------------------------------------------------------|
 * | `capped`              | says that the account may post nothing now, and names a time (default 2 s ahead)   |
 * | `banned`              | says that the account may post nothing until its owner does something there        |
 *
 * `once` = the first time for a target or a segment of its thread, `3x` = the first three times, neither = always. The
 * network keeps the count, so the count survives the worker. A duration without a count on `down`, `unreadable` and
 * `metrics_down` = from the first time on, for that long. An account's fault takes no duration. The directive stays in the
 * published text.
 *
 * The text of a first comment scripts the comment call alone: `rate_limit` and `down` may pass, `reject`, `duplicate` and
 * `token_death` do not, and the outcome of `timeout_…`, `error_…` and `late` is unknown. An account whose name begins with
 * `no-comments-` lacks the permission to comment: instagram, facebook and youtube refuse its comments with 403.
 * A directive that begins with `cover_` scripts the call that sets the cover of a published video, on facebook (reels) and youtube:
 * `cover_rate_limit`, `cover_down` and what gives no answer may pass, `cover_reject` and `cover_token_death` do not. An account
 * whose name begins with `no-covers-` may set none.
 * An account whose name begins with `day-limit-` meets what networks allow in a day after two posts: on youtube, linkedin,
 * pinterest and tiktok the budget of the app, on instagram and threads what the account may post in 24 hours.
 * An account whose name begins with `renamed-` is shown under another display name than at its connection.
 */
export const faultNames = [
  'rate_limit',
  'reject',
  'duplicate',
  'token_death',
  'down',
  'slow',
  'hang',
  'timeout_before',
  'timeout_after',
  'error_before',
  'error_after',
  'late',
  'unreadable',
  'processing_failed',
  'processing_never',
  'processing',
  'address_unproven',
  'removed',
  'metrics_nonsense',
  'metrics_down',
  'metrics_rate_limit',
  'metrics_token_death',
  'native_early',
  'native_never',
  'native_failed',
  'undo_timeout_before',
  'undo_timeout_after',
  'capped',
  'banned',
] as const;
export type FaultName = (typeof faultNames)[number];

export interface Fault {
  readonly name: FaultName;
  /** How often it fires for one target; null = always. */
  readonly times: number | null;
  /** Milliseconds; null = the fault's own default. */
  readonly durationMs: number | null;
}

const factor: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function words(rest: string): Pick<Fault, 'times' | 'durationMs'> {
  let times: number | null = null;
  let durationMs: number | null = null;
  for (const word of rest.split(/\s+/).filter((part) => part !== '')) {
    const often = /^(\d{1,4})x$/.exec(word);
    const long = /^(\d{1,7})(ms|s|m|h|d)$/.exec(word);
    if (word === 'once') times = 1;
    else if (often) times = Number(often[1]);
    else if (long) durationMs = Number(long[1]) * (factor[long[2] ?? 'ms'] ?? 1);
  }
  return { times, durationMs };
}

const nameOf = (word: string): FaultName | null =>
  faultNames.find((name) => name === word.replaceAll('-', '_')) ?? null;

function accountFault(username: string): Fault | null {
  for (const name of faultNames) {
    const prefix = `${name.replaceAll('_', '-')}-`;
    if (!username.startsWith(prefix)) continue;
    return { name, times: username.startsWith(`${prefix}once-`) ? 1 : null, durationMs: null };
  }
  return null;
}

/** Faults scripted for one target, the account's first. A directive that names no known fault is plain text. */
export function faultsOf(text: string, username: string | null): readonly Fault[] {
  const faults: Fault[] = [];
  const own = username === null ? null : accountFault(username);
  if (own !== null) faults.push(own);
  for (const [, word, rest] of text.matchAll(/\[\[sandbox:([a-z_-]{1,40})([^\]\n]{0,80})\]\]/g)) {
    const name = nameOf(word ?? '');
    if (name !== null) faults.push({ name, ...words(rest ?? '') });
  }
  return faults;
}
