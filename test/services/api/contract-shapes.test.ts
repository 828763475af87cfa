import assert from 'node:assert/strict';
import { eventTypes } from '#schemas/http/webhook-events.ts';
import type { ContractNode } from '#services/api/contract/components.ts';
import { contractFiles } from '#services/api/contract/emit.ts';
import { operations as operationTable } from '#services/api/operations.ts';
import { checkerOf } from '#test/support/published.ts';
import { suite } from '#test/support/suite.ts';

/** The forms that generators of clients understand, and the words that their users read. */

interface Content {
  readonly schema: ContractNode;
  readonly example?: unknown;
}
interface Link {
  readonly operationId: string;
  readonly parameters: Readonly<Record<string, string>>;
}
interface Response {
  readonly description: string;
  readonly content?: Readonly<Record<string, Content>>;
  readonly links?: Readonly<Record<string, Link>>;
  readonly headers?: Readonly<Record<string, unknown>>;
}
interface Described {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly parameters: readonly ContractNode[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> };
  readonly responses: Readonly<Record<string, Response>>;
}
interface Documented extends Omit<Described, 'responses'> {
  readonly responses: Readonly<Record<string, Response | { readonly $ref: string }>>;
}
interface Contract {
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Documented>>>>;
  readonly webhooks: Readonly<Record<string, { readonly $ref: string }>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, ContractNode>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly pathItems: Readonly<Record<string, { readonly post: Described }>>;
  };
}

const contract = JSON.parse(contractFiles()['openapi.json'] ?? '') as Contract;
const { schemas, pathItems } = contract.components;
const documented = Object.values(contract.paths).flatMap((item) => Object.values(item));
const responseAt = (response: Response | { readonly $ref: string }): Response =>
  '$ref' in response
    ? (contract.components.responses[response.$ref.replace('#/components/responses/', '')] ??
      assert.fail(response.$ref))
    : response;
/** The operations, each with its responses in place. */
const operations = documented.map(
  (one): Described => ({
    ...one,
    responses: Object.fromEntries(Object.entries(one.responses).map(([status, own]) => [status, responseAt(own)])),
  }),
);
const json = 'application/json';
const check = checkerOf(contract);
const nameOf = (schema: unknown): string => (schema as { readonly named: string }).named;
const prefix = '#/components/schemas/';
const nameIn = ($ref: unknown): string => String($ref).slice(prefix.length);

interface Place {
  readonly path: string;
  readonly node: ContractNode;
}

/** Every schema inside of a schema, with the place where it stands; references are not followed. */
const inside = (path: string, node: unknown): readonly Place[] => {
  if (typeof node !== 'object' || node === null) return [];
  const { properties, items, additionalProperties, oneOf, anyOf, allOf } = node as ContractNode;
  const below = [
    ...Object.entries((properties ?? {}) as ContractNode).map(([name, one]) => [`${path}.${name}`, one] as const),
    ...[items, additionalProperties].map((one) => [`${path}[]`, one] as const),
    ...[oneOf, anyOf, allOf].flatMap((some) => ((some ?? []) as unknown[]).map((one) => [`${path}|`, one] as const)),
  ];
  return [{ path, node: node as ContractNode }, ...below.flatMap(([at, one]) => inside(at, one))];
};

const places = Object.entries(schemas).flatMap(([name, schema]) => inside(name, schema));
const failing = (fault: (place: Place) => boolean): readonly string[] => places.filter(fault).map(({ path }) => path);

/** Names of the schemas that these schemas reach. */
const reached = (roots: readonly unknown[]): ReadonlySet<string> => {
  const names = new Set<string>();
  const follow = (node: unknown): void => {
    for (const { node: one } of inside('', node)) {
      const name = nameIn(one.$ref);
      if (one.$ref === undefined || names.has(name)) continue;
      names.add(name);
      follow(schemas[name]);
    }
  };
  for (const root of roots) follow(root);
  return names;
};

const answered = reached([
  ...operations.flatMap(({ responses }) =>
    Object.values(responses).flatMap(({ content = {} }) => Object.values(content).map(({ schema }) => schema)),
  ),
  ...Object.values(pathItems).map(({ post }) => post.requestBody?.content[json]?.schema),
]);
const requested = reached([
  ...operations.map(({ requestBody }) => requestBody?.content[json]?.schema),
  ...operations.flatMap(({ parameters }) => parameters.map(({ schema }) => schema)),
]);

suite('shapes of the contract', (t) => {
  t('every schema with members or values has a name of words', () => {
    const isTop = ({ path }: Place): boolean => Object.hasOwn(schemas, path);
    const shaped = ({ node }: Place): boolean => node.properties !== undefined || node.enum !== undefined;
    assert.deepEqual(
      failing((place) => shaped(place) && !isTop(place)),
      [],
    );
    assert.deepEqual(
      Object.keys(schemas).filter((name) => !/^([A-Z][a-z]*)+$/.test(name)),
      [],
    );
    for (const { operationId, parameters, requestBody, responses } of operations) {
      for (const { schema } of parameters) assert.equal((schema as ContractNode)?.enum, undefined, operationId);
      for (const { schema } of Object.values(requestBody?.content ?? {})) assert.ok(schema.$ref, operationId);
      for (const [type, { schema }] of Object.entries(responses['200']?.content ?? {})) {
        if (type === json) assert.ok(schema.$ref, operationId);
      }
    }
  });

  t('every refusal is a component with a short description, and no two components are alike', () => {
    for (const { operationId, responses } of documented) {
      for (const [status, own] of Object.entries(responses)) {
        assert.equal('$ref' in own, status >= '400', `${operationId} ${status}`);
      }
    }
    const shared = Object.entries(contract.components.responses);
    assert.equal(new Set(shared.map(([, one]) => JSON.stringify(one))).size, shared.length);
    // Generated clients make it the message of their exception.
    for (const [name, { description }] of shared) assert.ok(description.length <= 110, `${name}: ${description}`);
    const text = contractFiles()['openapi.json'] ?? '';
    assert.ok(text.length < 2_000_000, `the contract has ${text.length} characters`);
  });

  t('every schema is used', () => {
    assert.deepEqual(
      Object.keys(schemas).filter((name) => !answered.has(name) && !requested.has(name)),
      [],
    );
  });

  t('null is a type, maps have one form, enums are texts, requests have no defaults', () => {
    for (const keyword of ['anyOf', 'allOf', 'patternProperties', 'default', 'nullable', 'named', 'here', 'expects']) {
      assert.deepEqual(
        failing(({ node }) => Object.hasOwn(node, keyword)),
        [],
        keyword,
      );
    }
    const valued = ({ node }: Place): boolean => node.enum !== undefined || node['x-extensible-enum'] !== undefined;
    assert.deepEqual(
      failing((place) => valued(place) && place.node.type !== 'string'),
      [],
    );
    assert.deepEqual(
      failing(({ node }) => node.const !== undefined && node.type !== 'string'),
      [],
    );
    const nullableMap = ({ node }: Place): boolean =>
      (Array.isArray(node.type) && node.type.includes('object')) ||
      (node.additionalProperties as ContractNode | undefined)?.additionalProperties !== undefined;
    assert.deepEqual(failing(nullableMap), []);
    const union = ({ node }: Place): boolean =>
      Array.isArray(node.oneOf) &&
      !(node.oneOf.length === 2 && node.oneOf.some((one: ContractNode) => one.type === 'null')) &&
      node.discriminator === undefined;
    assert.deepEqual(failing(union), []);
  });

  t('enums of answers and events are open, those of requests are closed', () => {
    for (const name of answered) assert.equal(schemas[name]?.enum, undefined, `${name} may grow`);
    for (const name of requested) assert.equal(schemas[name]?.['x-extensible-enum'], undefined, `${name} is closed`);
  });

  t('no request publishes null but a partial update, which null resets', () => {
    const updates = operationTable.filter(({ merge }) => merge === true).map(({ body }) => nameOf(body));
    assert.deepEqual(updates, ['ClientUpdate', 'PostRevise', 'CampaignUpdate', 'WebhookUpdate']);
    const both = [...requested].filter((name) => !answered.has(name) && !updates.includes(name));
    const nullable = places.filter(
      ({ path, node }) =>
        both.includes(path.split(/[.[|]/)[0] ?? '') &&
        ((Array.isArray(node.type) && node.type.includes('null')) || node.type === 'null'),
    );
    assert.deepEqual(
      nullable.map(({ path }) => path),
      [],
    );
  });

  t('a PATCH that replaces says so in its summary; one that changes single members says that', () => {
    const patches = operationTable.filter(({ method }) => method === 'PATCH');
    assert.deepEqual(
      patches.filter(({ merge }) => merge !== true).map(({ id }) => id),
      ['updatePost'],
    );
    for (const { id, merge } of patches) {
      const { summary = '', description = '' } = operations.find(({ operationId }) => operationId === id) ?? {};
      if (merge === true) assert.match(description, /^Only the members that are sent change\./, id);
      else assert.match(summary, /^Replace a whole .*: members that are not sent return to their defaults$/, id);
    }
  });

  t('every schema, member and parameter is described', () => {
    const lacks = (node: ContractNode): boolean => typeof node.description !== 'string' || node.description === '';
    assert.deepEqual(
      Object.keys(schemas).filter((name) => lacks(schemas[name] ?? {})),
      [],
    );
    const member = /\.\w[^[|]*$/;
    assert.deepEqual(
      failing(({ path, node }) => member.test(path) && lacks(node)),
      [],
    );
    for (const { operationId, parameters, summary, description } of operations) {
      assert.ok(summary !== '' && description !== '', operationId);
      for (const one of parameters) {
        assert.ok(one.$ref !== undefined || !lacks(one), `${operationId}: ${String(one.name)}`);
      }
    }
  });

  t('every tag has no spaces, is described and used; every operation has one', () => {
    const used = new Set(
      [...operations, ...Object.values(pathItems).map(({ post }) => post)].flatMap((one) => one.tags),
    );
    assert.deepEqual(contract.tags.map(({ name }) => name).sort(), [...used].sort());
    for (const { name, description } of contract.tags) {
      assert.match(name, /^[a-z-]+$/);
      assert.ok(description.length > 10);
    }
  });

  t('every type of event is a webhook with its payload and an example', () => {
    assert.deepEqual(Object.keys(contract.webhooks).sort(), [...eventTypes].sort());
    for (const [type, { $ref }] of Object.entries(contract.webhooks)) {
      const item = pathItems[$ref.replace('#/components/pathItems/', '')];
      const { schema, example } = item?.post.requestBody?.content[json] ?? { schema: {} };
      assert.deepEqual(check(nameIn(schema.$ref), example), [], type);
      assert.equal((example as { readonly type: string }).type, type);
    }
  });

  t('examples of bodies and answers fit the published schemas', () => {
    for (const { operationId, requestBody, responses } of operations) {
      for (const { schema, example } of [requestBody?.content[json], responses['200']?.content?.[json]].filter(
        (one) => one !== undefined,
      )) {
        if (example !== undefined) assert.deepEqual(check(nameIn(schema.$ref), example), [], operationId);
      }
    }
  });

  t('an answer promises an ETag only where its data has the revision', () => {
    let promised = 0;
    for (const { id, answer } of operationTable) {
      const { headers = {} } = operations.find(({ operationId }) => operationId === id)?.responses['200'] ?? {};
      const { properties = {} } = answer as { readonly properties?: Readonly<Record<string, unknown>> };
      if (!Object.hasOwn(headers, 'ETag')) continue;
      assert.ok(Object.hasOwn(properties, 'revision'), `${id}: the answer has no revision`);
      promised++;
    }
    assert.ok(promised > 15);
  });

  t('no link leads from a deletion to what it deleted', () => {
    for (const { operationId, responses } of operations.filter((one) => one.operationId.startsWith('delete'))) {
      const own = Object.values(responses['200']?.links ?? {}).filter(
        ({ parameters }) => parameters.id === '$response.body#/data/id',
      );
      assert.deepEqual(own, [], operationId);
    }
  });

  t('links lead from an id in an answer to the operations that take it', () => {
    const byId = new Map(operations.map((one) => [one.operationId, one]));
    let walked = 0;
    for (const { operationId, responses } of operations) {
      const { content, links = {} } = responses['200'] ?? {};
      for (const { operationId: to, parameters } of Object.values(links)) {
        const target = byId.get(to);
        assert.ok(target !== undefined && to !== operationId, `${operationId} → ${to}`);
        const taken = target.parameters.filter((one) => one.in === 'path').map(({ name }) => name);
        assert.deepEqual(Object.keys(parameters), taken, `${operationId} → ${to}`);
        for (const expression of Object.values(parameters)) {
          const steps = expression.replace('$response.body#/', '').split('/');
          const value = steps.reduce<unknown>(
            (at, step) => (at as Readonly<Record<string, unknown>> | undefined)?.[step],
            content?.[json]?.example,
          );
          assert.ok(value === null || typeof value === 'string', `${operationId} → ${to}: ${expression}`);
          walked++;
        }
      }
    }
    const reachable = new Set(
      operations.flatMap(({ responses }) =>
        Object.values(responses['200']?.links ?? {}).map(({ operationId }) => operationId),
      ),
    );
    const byPath = operations.filter(({ parameters }) => parameters.some((one) => one.in === 'path'));
    assert.deepEqual(
      byPath.filter(({ operationId }) => !reachable.has(operationId)).map(({ operationId }) => operationId),
      ['getError'],
      'operations that no answer leads to',
    );
    assert.ok(walked > 50);
  });
});
