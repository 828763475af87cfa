import type { Context, Middleware } from 'koa';
import type { ConnectedProfile, OfferedAccount } from '#contracts/ports/connector.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { Platform } from '#schemas/common.ts';
import { errors } from '#services/api/call/errors.ts';
import { alertOf, escapeHtml, page } from '#services/shell/page.ts';
import { show } from '../links.ts';
import { attemptOf, keepAttempt, type OpenAttempt, showEnded } from './attempts.ts';
import { connectAccount } from './connect-account.ts';
import { fieldsOf } from './form.ts';
import { goOrShow } from './show-invite.ts';
import type { InviteTools } from './tools.ts';

const nameOf = ({ username, displayName, externalId }: ConnectedProfile): string => {
  const known = [displayName, username === null ? null : `@${username}`].filter((one) => one !== null);
  return known.length === 0 ? externalId : known.join(', ');
};

const tick = (profile: ConnectedProfile, at: number): string =>
  `<label class="tick"><input type="checkbox" name="account" value="${at}"> <span><bdi>${escapeHtml(nameOf(profile))}</bdi></span></label>`;

/** Several accounts of one login. */
const choicePage = (shown: {
  readonly clientName: string;
  readonly platform: Platform;
  /** In the order in which the choice is sent. */
  readonly profiles: readonly ConnectedProfile[];
  /** Why the choice was refused. */
  readonly words: string | null;
  /** Of the link's page. */
  readonly path: string;
}): string => {
  const { clientName, platform, profiles, words, path } = shown;
  const name = escapeHtml(rulesOf(platform).name);
  const title = `Choose accounts of ${rulesOf(platform).name}`;
  const html = `<h1>Connect to <bdi>${escapeHtml(clientName)}</bdi></h1>
<form method="post">
<fieldset><legend>Which accounts of ${name}?</legend>
${alertOf(words)}
${profiles.map(tick).join('\n')}
<button type="submit">Connect these accounts</button>
</fieldset></form>
<p><a href="${escapeHtml(path)}">Start again</a></p>`;
  return page(words === null ? title : `Not connected: ${title}`, html);
};

/** Networks list pages of a person; more are not shown. */
const maxOffered = 50;

type KeptChoice = {
  readonly accounts: readonly OfferedAccount[];
  readonly timezone: string | null;
};

/** Of an attempt that has led to accounts: connects the only one, or lets the guest choose. Answers where to go next. */
export const connectOffered = async (
  tools: InviteTools,
  ctx: Context,
  { open, platform, kept: { timezone } }: OpenAttempt<{ readonly timezone: string | null }>,
  offered: readonly OfferedAccount[],
): Promise<string> => {
  const [first] = offered;
  if (first === undefined) throw new BrokenInvariant('no account was offered');
  if (offered.length === 1) {
    await connectAccount(tools, ctx, open, { platform, timezone, ...first });
    return open.path;
  }
  const kept: KeptChoice = { accounts: offered.slice(0, maxOffered), timezone };
  return `/connect/choice/${await keepAttempt(tools, ctx, open, { kind: 'choice', platform, kept })}`;
};

const showChoice = (ctx: Context, { open, platform, kept }: OpenAttempt<KeptChoice>, words: string | null): void => {
  const { clientName, path } = open;
  const profiles = kept.accounts.map(({ profile }) => profile);
  const html = choicePage({ clientName, platform, profiles, words, path });
  show(ctx, words === null ? 200 : errors.validation_failed.status, html);
};

const choiceAt = (tools: InviteTools, ctx: Context, how: 'find' | 'take') =>
  attemptOf<KeptChoice>(tools, ctx, { kind: 'choice', token: ctx.params.token, how });

export const getChoice =
  (tools: InviteTools): Middleware =>
  async (ctx) => {
    const choice = await choiceAt(tools, ctx, 'find');
    return choice === null ? showEnded(ctx) : showChoice(ctx, choice, null);
  };

/**
 * A login with several accounts. They are kept, with what the network gave for them, until the guest has chosen; then
 * the choice is ended before the first is connected, so that an answer that was stored for minutes never replaces a
 * newer one. If we die in between, the guest begins again.
 */
export const postChoice =
  (tools: InviteTools): Middleware =>
  async (ctx) => {
    const shown = await choiceAt(tools, ctx, 'find');
    if (shown === null) return showEnded(ctx);
    const places = new Set((await fieldsOf(ctx)).getAll('account'));
    if (!shown.kept.accounts.some((_, at) => places.has(String(at)))) {
      return showChoice(ctx, shown, 'Choose at least one account.');
    }
    const taken = await choiceAt(tools, ctx, 'take');
    if (taken === null) return showEnded(ctx);
    faultPoint('connect:after-choice');
    const { open, platform, kept } = taken;
    await goOrShow(tools, ctx, open, { platform, way: 'choice' }, async () => {
      for (const [at, one] of kept.accounts.entries()) {
        if (!places.has(String(at))) continue;
        await connectAccount(tools, ctx, open, { platform, timezone: kept.timezone, ...one });
        faultPoint('connect:between-choices');
      }
      return open.path;
    });
  };
