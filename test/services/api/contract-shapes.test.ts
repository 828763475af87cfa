import assert from 'node:assert/strict';
import { eventTypes } from '#schemas/http/webhook-events.ts';
import type { ContractNode } from '#services/api/contract/components.ts';
import { contractFiles } from '#services/api/emit.ts';
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

const contract = JSON.parse(contractFiles(operationTable)['openapi.json'] ?? '') as Contract;
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
const prefix = '#/components/schemas/';
const nameIn = ($ref: unknown): string => String($ref).slice(prefix.length);

const nullType: ContractNode = { type: 'null' };

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
/** Names of the schemas of bodies. */
const sent = reached(operations.map(({ requestBody }) => requestBody?.content[json]?.schema));
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
    const text = contractFiles(operationTable)['openapi.json'] ?? '';
    assert.ok(text.length < 2_000_000, `the contract has ${text.length} characters`);
  });

  t('every schema is used', () => {
    assert.deepEqual(
      Object.keys(schemas).filter((name) => !answered.has(name) && !requested.has(name)),
      [],
    );
  });

  t('null is a type, maps have one form, requests have no defaults', () => {
    for (const keyword of ['anyOf', 'allOf', 'patternProperties', 'default', 'nullable', 'named', 'here', 'expects']) {
      assert.deepEqual(
        failing(({ node }) => Object.hasOwn(node, keyword)),
        [],
        keyword,
      );
    }
    assert.deepEqual(
      failing(({ node }) => node.const !== undefined && node.type !== 'string'),
      [],
    );
    const nullableMap = ({ node }: Place): boolean =>
      (Array.isArray(node.type) && node.type.includes('object')) ||
      (node.additionalProperties as ContractNode | undefined)?.additionalProperties !== undefined;
    assert.deepEqual(failing(nullableMap), []);
  });

  t('no union is one that a generator must guess at: a named object or map and null, and no other', () => {
    const named = ({ $ref }: ContractNode): ContractNode => schemas[nameIn($ref)] ?? {};
    const isUnion = ({ oneOf, discriminator }: ContractNode): boolean => {
      if (discriminator !== undefined) return true;
      const [first, second, ...more] = (oneOf ?? [{}, nullType]) as readonly ContractNode[];
      const isKnown = oneOf === undefined || named(first ?? {}).type === 'object';
      return !isKnown || second?.type !== 'null' || more.length > 0;
    };
    assert.deepEqual(
      failing(({ node }) => isUnion(node)),
      [],
    );
    const several = ({ type }: ContractNode): boolean =>
      Array.isArray(type) && (type.length !== 2 || type[1] !== 'null');
    assert.deepEqual(
      failing(({ node }) => several(node)),
      [],
    );
  });

  t('no text is in a union with null: null stands beside its type', () => {
    const ofText = ({ node }: Place): boolean =>
      ((node.oneOf ?? []) as readonly ContractNode[]).some(({ $ref }) => schemas[nameIn($ref)]?.type === 'string');
    assert.deepEqual(failing(ofText), []);
  });

  t('values are listed and closed nowhere, because names of values are made up by generators', () => {
    assert.deepEqual(
      failing(({ node }) => node.enum !== undefined || node['x-enum-varnames'] !== undefined),
      [],
    );
    const lists = places.filter(({ node }) => node['x-extensible-enum'] !== undefined);
    assert.ok(lists.length > 60);
    for (const { path, node } of lists) assert.ok([node.type].flat().includes('string'), path);
    const refusesOthers = ({ description }: ContractNode): boolean =>
      String(description).includes('Other values are refused.');
    for (const [name, node] of Object.entries(schemas)) {
      if (node['x-extensible-enum'] === undefined) continue;
      assert.equal(refusesOthers(node), requested.has(name), `${name} says whether other values are refused`);
    }
  });

  t('every optional member of a request may be null, and no parameter and no required member may', () => {
    const isNullable = ({ type, oneOf }: ContractNode): boolean =>
      [type].flat().includes('null') || ((oneOf ?? []) as readonly ContractNode[]).some((one) => one.type === 'null');
    let optional = 0;
    for (const name of sent) {
      const { properties = {}, required = [] } = schemas[name] ?? {};
      for (const [member, node] of Object.entries(properties as Readonly<Record<string, ContractNode>>)) {
        const isRequired = (required as readonly string[]).includes(member);
        // A caller must say that a recycle or a limit ends: the one null that is no absence.
        if (isRequired && isNullable(node)) assert.match(String(node.description), /null/i, `${name}.${member}`);
        if (isRequired) continue;
        assert.ok(isNullable(node), `${name}.${member} is optional and has no null`);
        optional += 1;
      }
    }
    assert.ok(optional > 130, String(optional));
    for (const { operationId, parameters } of operations) {
      for (const { schema } of parameters) {
        assert.ok(!isNullable((schema ?? {}) as ContractNode), `a parameter of ${operationId} may be null`);
      }
    }
  });

  t('generated exceptions have the title of a problem as their message', () => {
    const { title } = (schemas.Problem?.properties ?? {}) as Readonly<Record<string, ContractNode>>;
    assert.equal(title?.['x-ms-primary-error-message'], true);
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
      ['listAccountOptions', 'getEventGrowth', 'getEventProof', 'getError'],
      'operations that no answer leads to',
    );
    assert.ok(walked > 50);
  });
});
