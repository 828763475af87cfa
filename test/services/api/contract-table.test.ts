import assert from 'node:assert/strict';
import { contractFiles } from '#services/api/emit.ts';
import { operations } from '#services/api/operations.ts';
import { suite } from '#test/support/suite.ts';

/** The contract beside the operations of section 4 of the specification, typed by hand from it. */

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
}

interface Described {
  readonly 'x-required-scope'?: string;
  readonly 'x-required-role'?: string;
  readonly parameters: readonly (Parameter | { readonly $ref: string })[];
  readonly responses: Readonly<Record<string, unknown>>;
}

const specified: readonly (readonly [method: string, path: string, scope: string])[] = [
  ['GET', '/posts', 'posts.read'],
  ['POST', '/posts', 'posts.compose'],
  ['POST', '/posts/bulk', 'posts.compose'],
  ['POST', '/posts/preview', 'posts.compose'],
  ['GET', '/posts/{id}', 'posts.read'],
  ['PATCH', '/posts/{id}', 'posts.compose'],
  ['POST', '/posts/{id}/revise', 'posts.compose'],
  ['POST', '/posts/{id}/publish', 'posts.compose'],
  ['GET', '/posts/{id}/recycle', 'posts.read'],
  ['PUT', '/posts/{id}/recycle', 'posts.compose'],
  ['DELETE', '/posts/{id}/recycle', 'posts.compose'],
  ['GET', '/post-targets', 'posts.read'],
  ['GET', '/post-targets/{id}', 'posts.read'],
  ['POST', '/post-targets/{id}/reschedule', 'posts.compose'],
  ['POST', '/post-targets/{id}/retry', 'posts.compose'],
  ['POST', '/post-targets/{id}/cancel', 'posts.compose'],
  ['POST', '/post-targets/bulk', 'posts.compose'],
  ['GET', '/clients', 'clients.read'],
  ['POST', '/clients', 'clients.manage'],
  ['GET', '/clients/{id}', 'clients.read'],
  ['PATCH', '/clients/{id}', 'clients.manage'],
  ['DELETE', '/clients/{id}', 'clients.manage'],
  ['POST', '/clients/{id}/connect-invites', 'accounts.connect'],
  ['GET', '/accounts', 'accounts.read'],
  ['GET', '/accounts/{id}', 'accounts.read'],
  ['GET', '/accounts/cadence', 'accounts.read'],
  ['GET', '/accounts/{id}/cadence', 'accounts.read'],
  ['GET', '/quota', 'accounts.read'],
  ['GET', '/agency', 'agency.read'],
  ['GET', '/approvals', 'approvals.read'],
  ['GET', '/approvals/{id}', 'approvals.read'],
  ['POST', '/approvals/{id}/approve', 'approvals.decide'],
  ['POST', '/approvals/{id}/reject', 'approvals.decide'],
  ['POST', '/approvals/{id}/request-changes', 'approvals.decide'],
  ['GET', '/campaigns', 'campaigns.read'],
  ['POST', '/campaigns', 'campaigns.manage'],
  ['GET', '/campaigns/{id}', 'campaigns.read'],
  ['PATCH', '/campaigns/{id}', 'campaigns.manage'],
  ['DELETE', '/campaigns/{id}', 'campaigns.manage'],
  ['POST', '/campaigns/{id}/assign', 'campaigns.manage'],
  ['POST', '/campaigns/{id}/unassign', 'campaigns.manage'],
  ['POST', '/campaigns/{id}/shift', 'campaigns.manage'],
  ['GET', '/analytics/overview', 'analytics.read'],
  ['GET', '/analytics/posts', 'analytics.read'],
  ['GET', '/analytics/posts/{id}', 'analytics.read'],
  ['GET', '/analytics/accounts/{id}', 'analytics.read'],
  ['GET', '/analytics/clients/{id}', 'analytics.read'],
  ['GET', '/reports', 'reports.read'],
  ['GET', '/reports/{id}', 'reports.read'],
  ['GET', '/reports/{id}/exports/{runId}', 'reports.read'],
  ['GET', '/best-times', 'besttimes.read'],
  ['GET', '/media', 'media.read'],
  ['GET', '/media/{id}', 'media.read'],
  ['POST', '/media/presign', 'media.manage'],
  ['POST', '/media', 'media.manage'],
  ['POST', '/media/import-url', 'media.manage'],
  ['GET', '/webhooks', 'webhooks.read'],
  ['POST', '/webhooks', 'webhooks.manage'],
  ['GET', '/webhooks/{id}', 'webhooks.read'],
  ['PATCH', '/webhooks/{id}', 'webhooks.manage'],
  ['DELETE', '/webhooks/{id}', 'webhooks.delete'],
  ['POST', '/webhooks/{id}/test', 'webhooks.manage'],
  ['POST', '/webhooks/{id}/rotate-secret', 'webhooks.manage'],
  ['GET', '/webhooks/{id}/deliveries', 'webhooks.read'],
  // Of section 4.5, in its text.
  ['POST', '/analytics/refresh', 'analytics.read'],
];

/** Rules of the specification on top of the scope. */
const roles: Readonly<Record<string, string>> = {
  'DELETE /clients/{id}': 'owner',
};

const keyed = ['POST /posts', 'POST /media', 'POST /media/import-url', 'POST /webhooks'];

/** A caller meets these at any operation. */
const everywhere = ['200', '400', '401', '403', '404', '429', '500', '503'];

suite('the contract and the specification', (t) => {
  const contract = JSON.parse(contractFiles(operations)['openapi.json'] ?? '') as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
    readonly components: { readonly parameters: Readonly<Record<string, Parameter>> };
  };
  const parametersOf = ({ parameters }: Described): readonly (Parameter | undefined)[] =>
    parameters.map((one) => ('$ref' in one ? contract.components.parameters[one.$ref.split('/').at(-1) ?? ''] : one));
  const found = (method: string, path: string): Described | undefined => contract.paths[path]?.[method.toLowerCase()];

  t('64 of 64 operations are served, and POST /analytics/refresh', () => {
    assert.equal(new Set(specified.map(([method, path]) => `${method} ${path}`)).size, 65);
    const missing = specified.filter(([method, path]) => found(method, path) === undefined);
    assert.deepEqual(missing, []);
  });

  for (const [method, path, scope] of specified) {
    t(`${method} ${path}: scope, role, key and statuses`, () => {
      const name = `${method} ${path}`;
      const served = found(method, path);
      assert.ok(served !== undefined);
      if (name !== 'POST /analytics/refresh') assert.equal(served['x-required-scope'], scope);
      const role = roles[name];
      if (role !== undefined) assert.equal(served['x-required-role'], role);
      const statuses = Object.keys(served.responses);
      for (const status of everywhere) assert.ok(statuses.includes(status), `${status} of ${statuses}`);
      const key = parametersOf(served).find((one) => one?.in === 'header' && one.name === 'Idempotency-Key');
      if (keyed.includes(name)) assert.equal(key?.required, true);
      if (method === 'POST' && !path.endsWith('/preview')) assert.ok(key !== undefined, 'it takes no key');
    });
  }
});
