import type { ErrorCode } from '#domain/codes.ts';
import { Meta, Page, Problem } from '#schemas/http/common.ts';
import { errors } from '../call/errors.ts';
import type { Operation } from '../call/operation.ts';
import { codesOf } from './codes.ts';
import type { Components, ContractNode } from './components.ts';
import { linksOf } from './links.ts';

/** What an operation answers: its data in an envelope, or a problem. */

const header = (description: string, schema: ContractNode = { type: 'string' }): ContractNode => ({
  description,
  schema,
});
export const headers: ContractNode = {
  CorrelationId: header('The request’s own id, or the one that was sent.'),
  Challenge: header(
    'Bearer, with the document that names the authorization server (RFC 9728), and the scopes to ask for. With 403 only to an app that could be given the scope.',
  ),
  RateLimitPolicy: header('The allowance: q requests in w seconds (IETF draft).'),
  RateLimit: header('The rest of the allowance: r requests; the full allowance is back in t seconds.'),
  ETag: header('The resource’s revision in quotes, for If-Match.'),
  ConsistencyToken: header('Send it with a later read, and that read shows this write.'),
  Replayed: header('true when the answer is that of an earlier call with the same key.'),
  RetryAfter: header('Seconds.', { type: 'integer' }),
};
const headerRef = (name: string): ContractNode => ({ $ref: `#/components/headers/${name}` });
const onAll = {
  'X-Correlation-Id': headerRef('CorrelationId'),
  'RateLimit-Policy': headerRef('RateLimitPolicy'),
  RateLimit: headerRef('RateLimit'),
};

const problemExample = (code: ErrorCode): ContractNode => ({
  summary: errors[code].title,
  value: {
    type: `https://api.example/v1/errors/${code}`,
    title: errors[code].title,
    status: errors[code].status,
    code,
    correlationId: '3f0d6b58-6a9e-4b43-8a53-0f6f5c1a2b3c',
  },
});

type ByStatus = ReadonlyMap<number, readonly ErrorCode[]>;

const byStatus = (codes: readonly ErrorCode[]): ByStatus => Map.groupBy(codes, (code) => errors[code].status);

/** Codes that every operation with this status has: the name of a response has the others. */
const usualCodes = (operations: readonly Operation[]): ByStatus => {
  const usual = new Map<number, readonly ErrorCode[]>();
  for (const operation of operations) {
    for (const [status, codes] of byStatus(codesOf(operation))) {
      usual.set(status, usual.get(status)?.filter((code) => codes.includes(code)) ?? codes);
    }
  }
  return usual;
};

const reasons: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  406: 'NotAcceptable',
  408: 'RequestTimeout',
  409: 'Conflict',
  412: 'PreconditionFailed',
  413: 'PayloadTooLarge',
  415: 'UnsupportedMediaType',
  422: 'UnprocessableContent',
  429: 'TooManyRequests',
  500: 'InternalServerError',
  503: 'ServiceUnavailable',
};

const pascal = (name: string): string =>
  name.replace(/(?:^|_)([a-z])/g, (_all, letter: string) => letter.toUpperCase());

/** More codes than these would make a name that nobody reads: such a response is named after its operation. */
const maxNamedCodes = 3;

/** `ConflictStreamFullOfWrite`, `UnprocessableContentOfCreatePost`. */
const responseName = (
  { id, method }: Operation,
  status: number,
  codes: readonly ErrorCode[],
  usual: ByStatus,
): string => {
  const own = codes.filter((code) => usual.get(status)?.includes(code) !== true);
  const reason = reasons[status] ?? `Refused${status}`;
  if (own.length > maxNamedCodes) return `${reason}Of${pascal(id)}`;
  return `${reason}${own.map(pascal).join('Or')}${method === 'GET' ? '' : 'OfWrite'}`;
};

/** Short: generated clients make it the message of their exception, before the problem itself. */
const refusedWords = 'Refused: `code` of the problem says why, and `errors` which members of the input are at fault.';

const refusals = (operation: Operation, usual: ByStatus, components: Components): Record<string, ContractNode> =>
  Object.fromEntries(
    [...byStatus(codesOf(operation))].map(([status, codes]) => [
      String(status),
      components.response(responseName(operation, status, codes, usual), {
        description: refusedWords,
        headers: {
          ...onAll,
          ...(status === 429 || status === 503 ? { 'Retry-After': headerRef('RetryAfter') } : {}),
          ...(status === 401 || status === 403 ? { 'WWW-Authenticate': headerRef('Challenge') } : {}),
          // A call may have stored events before it was refused.
          ...(operation.method === 'GET' ? {} : { 'X-Consistency-Token': headerRef('ConsistencyToken') }),
        },
        content: {
          'application/problem+json': {
            schema: { $ref: '#/components/schemas/Problem' },
            examples: Object.fromEntries(codes.map((code) => [code, problemExample(code)])),
          },
        },
      }),
    ]),
  );

const exampleMeta = { correlationId: '3f0d6b58-6a9e-4b43-8a53-0f6f5c1a2b3c' };

/** Name under which the data of an answer is published. @throws Error when it has none */
export const dataNameOf = ({ id, answer }: Operation): string => {
  const { named } = answer as { readonly named?: string };
  if (named === undefined) throw new Error(`the answer of ${id} has no name`);
  return named;
};

/** `PostResult` holds one post, `PostSummaryList` a page of them; a raw answer is the data itself. */
const envelopeOf = (operation: Operation, components: Components): ContractNode => {
  const { answer, list, raw } = operation;
  const name = dataNameOf(operation);
  const data = components.published(answer);
  const meta = { ...components.published(Meta), description: 'About this answer.' };
  if (raw === true) return data;
  if (list === true) {
    return components.named(`${name}List`, {
      type: 'object',
      description: 'A page of a list.',
      required: ['data', 'page', 'meta'],
      properties: {
        data: { type: 'array', items: data, description: 'The rows of the page.' },
        page: { ...components.published(Page), description: 'Where the page stands in the list.' },
        meta,
      },
    });
  }
  return components.named(`${name}Result`, {
    type: 'object',
    description: 'One resource.',
    required: ['data', 'meta'],
    properties: { data: { ...data, description: 'The resource.' }, meta },
  });
};

/** An answer without a revision of its own has no ETag, though If-Match guards the resource above it. */
const tagged = ({ ifMatch, etag, answer }: Operation): boolean =>
  (ifMatch === true || etag === true) &&
  Object.hasOwn((answer as { readonly properties?: object }).properties ?? {}, 'revision');

const success = (operation: Operation, operations: readonly Operation[], components: Components): ContractNode => {
  const { list, raw, alsoAs = [], example, method } = operation;
  const schema = envelopeOf(operation, components);
  const page = { hasMore: false, cursor: null, nextCursor: null };
  const shown =
    raw === true
      ? example.data
      : list === true
        ? { data: [example.data], page, meta: exampleMeta }
        : { data: example.data, meta: exampleMeta };
  const links = linksOf(operation, operations);
  return {
    description: 'Done.',
    headers: {
      ...onAll,
      ...(tagged(operation) ? { ETag: headerRef('ETag') } : {}),
      ...(method === 'GET' ? {} : { 'X-Consistency-Token': headerRef('ConsistencyToken') }),
      ...(operation.idempotent === 'none' ? {} : { 'Idempotent-Replayed': headerRef('Replayed') }),
    },
    content: {
      'application/json': { schema, example: shown },
      ...Object.fromEntries(alsoAs.map((type) => [type, { schema: { type: 'string' } }])),
    },
    ...(Object.keys(links).length === 0 ? {} : { links }),
  };
};

/** The answers of each of these operations, by status. Refusals are components: most operations refuse alike. */
export const responsesOf = (
  operations: readonly Operation[],
  components: Components,
): ((operation: Operation) => Record<string, ContractNode>) => {
  components.published(Problem);
  const usual = usualCodes(operations);
  return (operation) => ({
    '200': success(operation, operations, components),
    ...refusals(operation, usual, components),
  });
};
