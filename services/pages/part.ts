import type { Part } from '#services/api/parts.ts';
import { approvalPages } from './approval.ts';
import { docsPages } from './docs/pages.ts';
import { invitePages } from './invites/pages.ts';
import { networkCalls } from './network-calls.ts';
import { rootPage } from './root.ts';

/** What the host of the api has for people and networks without a sign-in. */
export const pagesParts: readonly Part[] = [
  ({ deps, allowances, patience }) => invitePages(deps, allowances, patience),
  ({ deps, allowances, patience }) => approvalPages(deps, allowances, patience),
  ({ deps, allowances, patience }) => networkCalls(deps, { allowances, patience }),
  ({ deps, allowances }) => docsPages(deps, allowances),
  ({ deps, allowances }) => rootPage(deps, allowances),
];
