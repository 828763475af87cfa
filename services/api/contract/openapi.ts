import { keyPattern } from '#runtime/identity/key-form.ts';
import { limitWords } from '../call/access.ts';
import { isSearchable, type Operation, searchCostOf } from '../call/operation.ts';
import { Components, type ContractNode } from './components.ts';
import { parametersOf, sharedParameters } from './parameters.ts';
import { headers, responsesOf } from './responses.ts';
import { networkOverrides } from './variants.ts';
import { webhooksOf } from './webhooks.ts';

/** The contract, made from the table of operations. Pure: the same table gives the same bytes. */

const requestBody = ({ body, bodyOptional, example }: Operation, components: Components): ContractNode =>
  // A body without members of its own needs no schema: the call is made without one.
  body === undefined || Object.keys(body.properties).length === 0
    ? {}
    : {
        requestBody: {
          required: bodyOptional !== true,
          content: {
            'application/json': {
              schema: components.published(body),
              ...(example.body === undefined ? {} : { example: example.body }),
            },
          },
        },
      };

const words = (operation: Operation): string => {
  const { scope, role, description, idempotent, cost } = operation;
  const facts = [
    scope === null ? 'Needs no token.' : `Scope: \`${scope}\`.`,
    role === undefined ? undefined : `Only for the role ${role}.`,
    idempotent === 'none' ? undefined : `Idempotency-Key: ${idempotent}.`,
    cost === 1 ? undefined : `Counts as ${cost} requests.`,
    isSearchable(operation) && searchCostOf(operation) !== cost
      ? `With \`search\` it counts as ${searchCostOf(operation)} requests.`
      : undefined,
  ]
    .filter((part) => part !== undefined)
    .join(' ');
  return [description, facts].filter((part) => part !== undefined).join('\n\n');
};

export const openapiOf = (operations: readonly Operation[]): ContractNode => {
  const components = new Components({ made: { NetworkOverrides: networkOverrides } });
  const responses = responsesOf(operations, components);
  const paths: Record<string, ContractNode> = {};
  for (const operation of operations) {
    const { id, path, method, tag, summary, scope } = operation;
    paths[path] = {
      ...paths[path],
      [method.toLowerCase()]: {
        operationId: id,
        tags: [tag.name],
        summary,
        description: words(operation),
        security: scope === null ? [] : [{ bearer: [] }],
        ...(scope === null ? {} : { 'x-required-scope': scope }),
        ...(operation.role === undefined ? {} : { 'x-required-role': operation.role }),
        parameters: parametersOf(operation, components),
        ...requestBody(operation, components),
        responses: responses(operation),
      },
    };
  }
  const { webhooks, pathItems } = webhooksOf(components);
  const sorted = (all: Readonly<Record<string, ContractNode>>): ContractNode =>
    Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1)));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Postline',
      version: '1.0.0',
      summary: 'Social-media publishing and analytics for agencies.',
      description:
        'Compose one post and it goes out to many accounts, each at its own time. Success bodies are `{data, meta}` or `{data, page, meta}`; errors are `application/problem+json`, branch on `code`. Within version 1 shapes and enums may grow, never change: expect members and values that you do not know. In a body, null is as good as leaving an optional member out; in an update of single members it gives the member its default again. Requests are limited per credential and api process, see RateLimit-Policy; all credentials of a workspace together have what five have, unless the installation sets another number.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: 'https://api.example/v1' }],
    tags: [
      ...[...new Set(operations.map(({ tag }) => tag))].map(({ name, about }) => ({ name, description: about })),
      { name: 'events', description: 'What webhook endpoints receive: one signed call for each event.' },
    ],
    paths,
    webhooks,
    components: {
      schemas: sorted(components.schemas),
      responses: sorted(components.responses),
      headers,
      parameters: sharedParameters,
      pathItems,
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: [
            `An API key: \`sk_live_…\`, or \`sk_test_…\` for the sandbox twin. Secret scanners find keys by the pattern \`${keyPattern}\`; the last six characters are the CRC-32 of all before them, in base 62 (0-9, A-Z, a-z).`,
            limitWords(operations),
          ].join('\n\n'),
        },
      },
    },
  };
};
