import type { Context } from 'koa';
import type { Membership } from '#projections/models/workspaces.ts';
import type { Principal } from '#services/api/call/operation.ts';
import type { PartTools } from '#services/api/parts.ts';
import type { PersonSession } from '#services/auth/people/sessions.ts';

/** What the pages share: the tools of the server, and who asks for a page. */

/** The tools of the server. Without a mailer in them an operator delivers links. */
export type Console = PartTools;

/** A signed-in person, as of this request. */
export interface Visitor {
  readonly session: PersonSession;
  readonly personId: string;
  readonly name: string;
  readonly email: string;
  /** Whether somebody has proven that the address is the person's. */
  readonly isProven: boolean;
  /** The workspaces of which the person is a member now. */
  readonly memberships: readonly Membership[];
  /** The one that the person looks at; null where there is none. */
  readonly membership: Membership | null;
}

/** A person in a workspace. */
export interface MemberVisitor extends Visitor {
  readonly membership: Membership;
  /** Of the workspace and mode that the person looks at. */
  readonly principal: Principal;
  /** Of the live workspace: to it belong keys, members, apps and sessions, also those that work in the sandbox. */
  readonly livePrincipal: Principal;
}

/** One request for a page. */
export interface Visit<Who extends Visitor | null = Visitor | null> {
  readonly it: Console;
  readonly ctx: Context;
  /** Parts of the path. */
  readonly params: Readonly<Record<string, string>>;
  /** What was sent; empty for GET. */
  readonly form: URLSearchParams;
  readonly visitor: Who;
  /** For the forms of the page that is shown. */
  readonly formToken: string;
}
