import type { Context } from 'koa';
import type { CodeConnector, ConsentConnector, FormConnector } from '#contracts/ports/connector.ts';
import type { Json } from '#contracts/ports/platform.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { Deps } from '#services/api/call/deps.ts';
import { keepAttempt, newSecretText } from './attempts.ts';
import { codePath, type KeptCode } from './code.ts';
import { connectAccount } from './connect-account.ts';
import { nameOfWay, type Wanted } from './form.ts';
import type { OpenInvite } from './open-invite.ts';
import { type InviteTools, refusedBy } from './tools.ts';

/** What happens when a guest sends the form of a network. Each way answers where the browser goes next. */

/** Where networks send browsers back to: on the host of the pages, as the cookie of the browser belongs to that. */
export const redirectUriOf = ({ consoleUrl }: Pick<Deps, 'consoleUrl'>): string => `${consoleUrl()}/connect/callback`;

/** What an attempt keeps until the network sends the browser back. */
export type KeptForConsent = {
  readonly connector: Readonly<Record<string, Json>>;
  readonly timezone: string | null;
  readonly way: string;
};

type Begin<C> = (
  tools: InviteTools,
  ctx: Context,
  open: OpenInvite,
  wanted: Wanted & { readonly connector: C },
) => Promise<string>;

const sandbox: Begin<null> = async (tools, ctx, open, { platform, username, timezone }) => {
  const profile = { ...tools.deps.sandboxProfile(platform, username), consentEndsAt: null };
  await connectAccount(tools, ctx, open, { platform, timezone, profile, credential: null });
  return open.path;
};

const form: Begin<FormConnector> = async (tools, ctx, open, wanted) => {
  const { platform, timezone, connector, username, secrets } = wanted;
  const answer = await tools.ask(open.workspaceId, (signal) => connector.connect(username, secrets, signal));
  if (answer.kind === 'refused') throw refusedBy(tools.deps, platform, answer);
  await connectAccount(tools, ctx, open, { platform, timezone, ...answer });
  return open.path;
};

const consent: Begin<ConsentConnector> = async (tools, ctx, open, { platform, timezone, connector, ...typed }) => {
  const state = newSecretText();
  const username = connector.usernameLabel === null ? null : typed.username;
  const asked = { username, redirectUri: redirectUriOf(tools.deps), state };
  const begun = await tools.ask(open.workspaceId, (signal) => connector.begin(asked, signal));
  if (begun.kind === 'refused') throw refusedBy(tools.deps, platform, begun);
  const kept: KeptForConsent = { connector: begun.kept, timezone, way: nameOfWay(connector) };
  await keepAttempt(tools, ctx, open, { kind: 'consent', platform, kept, token: state });
  faultPoint('connect:after-attempt');
  return begun.url;
};

const code: Begin<CodeConnector> = async (tools, ctx, open, { platform, timezone, connector }) => {
  const begun = await tools.ask(open.workspaceId, (signal) => connector.begin(open.workspaceId, signal));
  if (begun.kind === 'refused') throw refusedBy(tools.deps, platform, begun);
  const kept: KeptCode = { code: begun.code, message: begun.message, steps: begun.steps, timezone };
  return codePath(await keepAttempt(tools, ctx, open, { kind: 'code', platform, kept }));
};

/** @throws Refusal with words for the guest */
export const begin = (tools: InviteTools, ctx: Context, open: OpenInvite, wanted: Wanted): Promise<string> => {
  const { connector } = wanted;
  if (connector === null) return sandbox(tools, ctx, open, { ...wanted, connector });
  if (connector.kind === 'form') return form(tools, ctx, open, { ...wanted, connector });
  if (connector.kind === 'consent') return consent(tools, ctx, open, { ...wanted, connector });
  return code(tools, ctx, open, { ...wanted, connector });
};
