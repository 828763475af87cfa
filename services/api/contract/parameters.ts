import type { TSchema } from 'typebox';
import type { Operation } from '../call/operation.ts';
import type { Components, ContractNode } from './components.ts';

/** Parameters of the path, the query and the headers. */

/** A parameter's words stand beside its schema; its default is a keyword, which no client sends. */
const parameter = (components: Components, member: TSchema): ContractNode => {
  const { default: preset, ...own } = member as TSchema & { readonly default?: unknown };
  const { description, schema } = components.parameter(own as TSchema);
  return {
    ...(description === undefined ? {} : { description }),
    ...(schema.type === 'array' ? { style: 'form', explode: false } : {}),
    schema: preset === undefined || preset === null ? schema : { ...schema, default: preset },
  };
};

export const parametersOf = (
  { params, query, idempotent, ifMatch, method }: Operation,
  components: Components,
): readonly ContractNode[] => {
  const inPath = Object.entries(params?.properties ?? {}).map(([name, member]) => ({
    name,
    in: 'path',
    required: true,
    ...parameter(components, member as TSchema),
  }));
  const inQuery = Object.entries(query?.properties ?? {}).map(([name, member]) => ({
    name,
    in: 'query',
    required: query?.required?.includes(name) === true,
    ...parameter(components, member as TSchema),
  }));
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

const key = (required: boolean): ContractNode => ({
  name: 'Idempotency-Key',
  in: 'header',
  required,
  description: 'Unique per logical mutation: a repeat with the same key and the same request answers the first result.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x21-\\x7e]+$' },
});

export const sharedParameters: ContractNode = {
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
