import { isAtLeast, roleAllows } from '#domain/roles.ts';
import type { Scope } from '#schemas/apikey.ts';
import { type Role, roles } from '#schemas/common.ts';
import { grantableScopes } from '#schemas/grant.ts';
import type { Operation, Principal } from '../call/operation.ts';

/**
 * Who may do what: role × scope × operation × kind of credential, made from the table of operations. The test of this
 * table asks the server for every cell.
 */

/** What a caller presents. */
export interface CallerCredential {
  readonly name: string;
  readonly kind: Principal['kind'];
  /** Whether it is limited to clients. */
  readonly limited: boolean;
}

export const credentials = [
  { name: 'API key', kind: 'apikey', limited: false },
  { name: 'API key limited to clients', kind: 'apikey', limited: true },
  { name: 'Session', kind: 'session', limited: false },
  { name: 'OAuth token', kind: 'oauth', limited: false },
] as const satisfies readonly CallerCredential[];

export type Outcome = 'allowed' | 'insufficient_scope' | 'role_required' | 'first_party_only' | 'client_limited';

type Asked = Pick<Operation, 'limited' | 'scope' | 'role' | 'firstParty'>;

const isGrantable = (scope: Scope): boolean => grantableScopes.some((one) => one === scope);

/** What the api answers to an authenticated caller before it looks at the input; the first that applies. */
export const outcomeOf = (
  { limited, scope, role: only, firstParty }: Asked,
  {
    role,
    credential,
    hasScope,
  }: { readonly role: Role; readonly credential: CallerCredential; readonly hasScope: boolean },
): Outcome => {
  if (scope === null) return 'allowed';
  if (!hasScope || (credential.kind === 'oauth' && !isGrantable(scope))) return 'insufficient_scope';
  if (!roleAllows(role, scope) || (only !== undefined && !isAtLeast(role, only))) return 'role_required';
  if (firstParty === true && credential.kind !== 'session') return 'first_party_only';
  return credential.limited && limited === 'refused' ? 'client_limited' : 'allowed';
};

const marks: Readonly<Record<Outcome, string>> = {
  allowed: 'yes',
  insufficient_scope: 'scope',
  role_required: '–',
  first_party_only: 'session',
  client_limited: 'limit',
};

const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

const tableOf = (operations: readonly Operation[], credential: CallerCredential): string => {
  const heads = ['operation', '', 'scope', ...roles];
  const rows = operations.map((operation) => [
    operation.id,
    `\`${operation.method} ${operation.path}\``,
    operation.scope === null ? 'none' : `\`${operation.scope}\``,
    ...roles.map((role) => marks[outcomeOf(operation, { role, credential, hasScope: true })]),
  ]);
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n');
};

/** The tables as a page; pure, so that the same operations give the same bytes. */
export const accessOf = (operations: readonly Operation[]): string =>
  `${[
    '# Who may do what',
    'Made by `make contracts` from the table of operations; `test/services/api/access.test.ts` asks the server for every cell, with live and with test data, whose answers are the same.',
    'The api checks in this order: whether the workspace is closed (403 `workspace_closed`), the scope of the credential (403 `insufficient_scope`), the role of its member at the time of the call (403 `role_required`), what only the console may do (403 `first_party_only`), and what concerns the whole workspace (403 `client_limited` to a credential that is limited to clients). A session has every scope. An operation without a scope asks for no credential.',
    `The cells: ${Object.entries(marks)
      .map(([outcome, mark]) => `**${mark}** ${outcome === 'allowed' ? 'allowed' : `\`${outcome}\``}`)
      .join(', ')}; for a credential that has the scope, or, of an app, every scope that an app can be given.`,
    ...credentials.flatMap((credential) => [`## ${credential.name}`, tableOf(operations, credential)]),
  ].join('\n\n')}\n`;
