import type { TSchema } from 'typebox';
import type { ErrorCode } from '#domain/codes.ts';
import { Meta, Page, Problem } from '#schemas/http/common.ts';
import { errors } from './errors.ts';
import { isSearchable, type Operation, searchCost } from './operation.ts';

/** The contract, made from the table of operations. Pure: the same table gives the same bytes. */

type Json = Record<string, unknown>;

/** `expects` holds words for messages of ours. */
const plain = (schema: TSchema): Json =>
  JSON.parse(JSON.stringify(schema, (name, value: unknown) => (name === 'expects' ? undefined : value))) as Json;

/** `post_target` → `PostTarget`. */
const pascal = (noun: string): string =>
  noun.replace(/(^|_)([a-z])/g, (_all, _dash: string, letter: string) => letter.toUpperCase());

/** Named once, referred to everywhere: resources by their noun. */
class Components {
  readonly schemas: Record<string, Json> = {
    Meta: plain(Meta),
    Page: plain(Page),
    Problem: plain(Problem),
  };

  refTo(schema: TSchema): Json {
    const json = plain(schema);
    const noun = (json.properties as { object?: { const?: string } } | undefined)?.object?.const;
    if (noun === undefined) return json;
    // A list may show fewer members of a resource than a single read.
    const name = [pascal(noun), `${pascal(noun)}Row`].find((one) => {
      const known = this.schemas[one];
      return known === undefined || JSON.stringify(known) === JSON.stringify(json);
    });
    if (name === undefined) throw new Error(`${noun} has more than two shapes`);
    this.schemas[name] = json;
    return { $ref: `#/components/schemas/${name}` };
  }
}

/** The codes with which any operation of this form may refuse. */
export const codesOf = ({
  body,
  scope,
  idempotent,
  query,
  list,
  params,
  codes,
  ifMatch,
  method,
  role,
  firstParty,
}: Operation): readonly ErrorCode[] => {
  const paged = list === true && query !== undefined;
  const all: readonly ErrorCode[] = [
    'invalid_parameter',
    ...(body === undefined ? [] : (['invalid_json'] as const)),
    ...(paged ? (['invalid_cursor'] as const) : []),
    ...(idempotent === 'required' ? (['idempotency_key_required'] as const) : []),
    ...(idempotent === 'none' ? [] : (['idempotency_key_invalid', 'idempotency_key_reused'] as const)),
    'missing_token',
    'invalid_token',
    'token_expired',
    'token_revoked',
    'insufficient_scope',
    ...(scope === null && role === undefined ? [] : (['role_required'] as const)),
    ...(firstParty === true ? (['first_party_only'] as const) : []),
    ...(params === undefined ? [] : (['not_found'] as const)),
    'not_found',
    'not_acceptable',
    ...(body === undefined ? [] : (['payload_too_large', 'too_many_values', 'unsupported_media_type'] as const)),
    ...(ifMatch === true && method !== 'GET' ? (['revision_mismatch'] as const) : []),
    'validation_failed',
    ...codes,
    'rate_limited',
    'internal',
    'unavailable',
  ];
  return [...new Set(all)];
};

const header = (description: string, schema: Json = { type: 'string' }): Json => ({ description, schema });
const headers: Json = {
  CorrelationId: header('The request’s own id, or the one that was sent.'),
  RateLimitPolicy: header('The allowance: q requests in w seconds (IETF draft).'),
  RateLimit: header('The rest of the allowance: r requests; the full allowance is back in t seconds.'),
  ETag: header('The resource’s revision in quotes, for If-Match.'),
  ConsistencyToken: header('Send it with a later read, and that read shows this write.'),
  Replayed: header('true when the answer is that of an earlier call with the same key.'),
  RetryAfter: header('Seconds.', { type: 'integer' }),
};
const headerRef = (name: string): Json => ({ $ref: `#/components/headers/${name}` });
const onAll = {
  'X-Correlation-Id': headerRef('CorrelationId'),
  'RateLimit-Policy': headerRef('RateLimitPolicy'),
  RateLimit: headerRef('RateLimit'),
};

const problemExample = (code: ErrorCode): Json => ({
  type: `https://api.example/v1/errors/${code}`,
  title: errors[code].title,
  status: errors[code].status,
  code,
  correlationId: '3f0d6b58-6a9e-4b43-8a53-0f6f5c1a2b3c',
});

const refusals = (operation: Operation): Record<string, Json> => {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of codesOf(operation)) {
    const { status } = errors[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      String(status),
      {
        description: codes.map((code) => `\`${code}\`: ${errors[code].title}.`).join(' '),
        headers: {
          ...onAll,
          ...(status === 429 || status === 503 ? { 'Retry-After': headerRef('RetryAfter') } : {}),
          ...(status === 401 ? { 'WWW-Authenticate': header('Bearer.') } : {}),
          // A call may have stored events before it was refused.
          ...(operation.method === 'GET' ? {} : { 'X-Consistency-Token': headerRef('ConsistencyToken') }),
        },
        content: {
          'application/problem+json': {
            schema: { $ref: '#/components/schemas/Problem' },
            examples: Object.fromEntries(codes.map((code) => [code, { value: problemExample(code) }])),
          },
        },
      },
    ]),
  );
};

const exampleMeta = { correlationId: '3f0d6b58-6a9e-4b43-8a53-0f6f5c1a2b3c' };

const success = (operation: Operation, components: Components): Json => {
  const { answer, list, raw, alsoAs = [], example, ifMatch, etag, method } = operation;
  const data = components.refTo(answer);
  const one = {
    type: 'object',
    required: ['data', 'meta'],
    properties: { data, meta: { $ref: '#/components/schemas/Meta' } },
  };
  const many = {
    type: 'object',
    required: ['data', 'page', 'meta'],
    properties: {
      data: { type: 'array', items: data },
      page: { $ref: '#/components/schemas/Page' },
      meta: { $ref: '#/components/schemas/Meta' },
    },
  };
  const page = { hasMore: false, cursor: null, nextCursor: null };
  const shown =
    raw === true
      ? example.data
      : list === true
        ? { data: [example.data], page, meta: exampleMeta }
        : { data: example.data, meta: exampleMeta };
  return {
    description: 'Done.',
    headers: {
      ...onAll,
      ...(ifMatch === true || etag === true ? { ETag: headerRef('ETag') } : {}),
      ...(method === 'GET' ? {} : { 'X-Consistency-Token': headerRef('ConsistencyToken') }),
      ...(operation.idempotent === 'none' ? {} : { 'Idempotent-Replayed': headerRef('Replayed') }),
    },
    content: {
      'application/json': { schema: raw === true ? data : list === true ? many : one, example: shown },
      ...Object.fromEntries(alsoAs.map((type) => [type, { schema: { type: 'string' } }])),
    },
  };
};

const parameters = ({ params, query, idempotent, ifMatch, method }: Operation): readonly Json[] => {
  const inPath = Object.entries(params?.properties ?? {}).map(([name, schema]) => ({
    name,
    in: 'path',
    required: true,
    schema: plain(schema as TSchema),
  }));
  const inQuery = Object.entries(query?.properties ?? {}).map(([name, member]) => {
    const { default: preset, ...schema } = plain(member as TSchema);
    // Null exists in bodies only: a query has a parameter or lacks it.
    const meant = (schema.anyOf as Json[] | undefined)?.find((one) => one.type !== 'null') ?? schema;
    const { description, ...rest } = meant;
    return {
      name,
      in: 'query',
      required: query?.required?.includes(name) === true,
      ...(description === undefined ? {} : { description }),
      ...(rest.type === 'array' ? { style: 'form', explode: false } : {}),
      schema: preset === undefined ? rest : { ...rest, default: preset },
    };
  });
  const shared = [
    ...(idempotent === 'none'
      ? []
      : [{ $ref: `#/components/parameters/IdempotencyKey${idempotent === 'required' ? '' : 'Optional'}` }]),
    ...(ifMatch === true && method !== 'GET' ? [{ $ref: '#/components/parameters/IfMatch' }] : []),
    ...(method === 'GET' ? [{ $ref: '#/components/parameters/ConsistencyToken' }] : []),
    { $ref: '#/components/parameters/CorrelationId' },
  ];
  return [...inPath, ...inQuery, ...shared];
};

const key = (required: boolean): Json => ({
  name: 'Idempotency-Key',
  in: 'header',
  required,
  description: 'Unique per logical mutation: a repeat with the same key and the same request answers the first result.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x21-\\x7e]+$' },
});

const sharedParameters: Json = {
  IdempotencyKey: key(true),
  IdempotencyKeyOptional: key(false),
  IfMatch: {
    name: 'If-Match',
    in: 'header',
    description: 'Refuses with 412 unless the revision is one of these. Optional.',
    schema: { type: 'string' },
  },
  ConsistencyToken: {
    name: 'X-Consistency-Token',
    in: 'header',
    description: 'The token of an earlier write: the answer shows that write, after a wait of at most 2 s.',
    schema: { type: 'string' },
  },
  CorrelationId: {
    name: 'X-Correlation-Id',
    in: 'header',
    description: 'Your own id of the request; the service keeps it when it has 1 to 128 visible ASCII characters.',
    schema: { type: 'string' },
  },
};

const requestBody = ({ body, bodyOptional, example }: Operation): Json =>
  body === undefined
    ? {}
    : {
        requestBody: {
          required: bodyOptional !== true,
          content: {
            'application/json': {
              schema: plain(body),
              ...(example.body === undefined ? {} : { example: example.body }),
            },
          },
        },
      };

const words = (operation: Operation): string => {
  const { scope, role, description, idempotent, cost } = operation;
  return [
    description,
    scope === null ? 'Needs no token.' : `Scope: \`${scope}\`.`,
    role === undefined ? undefined : `Only for the role ${role}.`,
    idempotent === 'none' ? undefined : `Idempotency-Key: ${idempotent}.`,
    cost === 1 ? undefined : `Counts as ${cost} requests.`,
    isSearchable(operation) ? `With \`search\` it counts as ${searchCost} requests.` : undefined,
  ]
    .filter((part) => part !== undefined)
    .join(' ');
};

const tagWords: Readonly<Record<string, string>> = {
  agency: 'The workspace of the credential.',
  client: 'Brands and influencers, and the links that connect their accounts.',
  account: 'Connected social accounts.',
  post: 'Posts, each composed once and sent to many accounts.',
  'post target': 'The destinations of a post: one target for each account.',
  webhook: 'Endpoints that receive events, their signing secrets, deliveries and replays.',
  analytics: 'Figures of posts and accounts as their networks report them, and the best times to post.',
  report: 'Saved reports, their runs and their exported files.',
  contract: 'This contract and the catalogue of errors.',
};

export const openapiOf = (operations: readonly Operation[]): Json => {
  const components = new Components();
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    const { id, path, method, tag, summary, scope } = operation;
    paths[path] = {
      ...paths[path],
      [method.toLowerCase()]: {
        operationId: id,
        tags: [tag],
        summary,
        description: words(operation),
        security: scope === null ? [] : [{ bearer: [] }],
        ...(scope === null ? {} : { 'x-required-scope': scope }),
        ...(operation.role === undefined ? {} : { 'x-required-role': operation.role }),
        parameters: parameters(operation),
        ...requestBody(operation),
        responses: { '200': success(operation, components), ...refusals(operation) },
      },
    };
  }
  const tags = [...new Set(operations.map(({ tag }) => tag))];
  return {
    openapi: '3.1.0',
    info: {
      title: 'Postline',
      version: '1.0.0',
      summary: 'Social-media publishing and analytics for agencies.',
      description:
        'Compose one post and it goes out to many accounts, each at its own time. Success bodies are `{data, meta}` or `{data, page, meta}`; errors are `application/problem+json`, branch on `code`. Within version 1 shapes and enums may grow, never change. Requests are limited per credential and api process: see RateLimit-Policy.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: 'https://api.example/v1' }],
    tags: tags.map((name) => ({ name, description: tagWords[name] ?? name })),
    paths,
    components: {
      schemas: components.schemas,
      headers,
      parameters: sharedParameters,
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'An API key: `sk_live_…`, or `sk_test_…` for the sandbox twin.',
        },
      },
    },
  };
};
