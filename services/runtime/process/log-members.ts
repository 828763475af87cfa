import { pino } from 'pino';

/** Removes secrets and quoted rows from the members of a log line. */

const couldBeSecret =
  /^(authorization|key|apikey|credentials|cookie|setcookie|(database|eventstore|esdb|clickhouse|smtp)url)$|(token|secret|password|secretkey|secretaccesskey|accesskeyid)$/;
const judged = new Map<string, boolean>();
const isSecretName = (name: string): boolean => {
  const known = judged.get(name);
  if (known !== undefined) return known;
  const secret = couldBeSecret.test(name.replaceAll(/[-_]/g, '').toLowerCase());
  if (judged.size < 10_000) judged.set(name, secret);
  return secret;
};

const deepest = 8;

/** Members of a Postgres error that quote refused rows, and statements with their values. */
const quoting: ReadonlySet<string> = new Set(['detail', 'where', 'internalQuery']);

const isOfPostgres = (value: object): value is { readonly code: string } =>
  'severity' in value && typeof value.severity === 'string' && 'code' in value && typeof value.code === 'string';

/** Messages along the causes of an error that quote the offending value: Postgres's class 22, data exceptions. */
const quotingMessages = (error: unknown, depth = 0): readonly string[] => {
  if (!(error instanceof Error) || depth > deepest) return [];
  const own = isOfPostgres(error) && error.code.startsWith('22') && error.message.includes('"') ? [error.message] : [];
  const within = error instanceof AggregateError ? error.errors : [];
  return [...own, ...[error.cause, ...within].flatMap((one) => quotingMessages(one, depth + 1))];
};

/**
 * A stack, and an error that wraps another, repeat its message: the quoted value is removed wherever the message
 * stands.
 */
const withoutValues = (text: string, messages: readonly string[]): string =>
  messages.reduce((left, message) => left.replaceAll(message, message.replace(/"[\s\S]*/, '"…"')), text);

/**
 * Removes members that could hold a secret or a row, at any depth up to 8, in errors too; the caller of the logger
 * masks tokens in texts and paths. NOTE: pino's own `redact` takes ten times as long and reaches only configured
 * depths.
 */
const cut = (value: unknown, depth = 0, outer: readonly string[] = []): unknown => {
  if (typeof value === 'string') return withoutValues(value, outer);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > deepest) return '…';
  if (Array.isArray(value)) return value.map((one) => cut(one, depth + 1, outer));
  const messages = value instanceof Error ? [...outer, ...quotingMessages(value)] : outer;
  const source = value instanceof Error ? pino.stdSerializers.err(value) : value;
  if ('toJSON' in source && typeof source.toJSON === 'function') return cut(source.toJSON(), depth + 1, messages);
  const isCut = (name: string) => isSecretName(name) || (quoting.has(name) && isOfPostgres(source));
  return Object.fromEntries(
    Object.entries(source).map(([name, one]) => [name, isCut(name) ? '…' : cut(one, depth + 1, messages)]),
  );
};
export const cutMembers = (members: object) => cut(members) as Record<string, unknown>;

/** The message of an error in the form that a line may show. */
export const shownMessage = (error: Error): string => withoutValues(error.message, quotingMessages(error));
