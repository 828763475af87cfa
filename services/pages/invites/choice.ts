import type { Context, Middleware } from 'koa';
import { within } from '#contracts/base/pause.ts';
import type { ConnectedProfile, FinishedConsent, OfferedAccount } from '#contracts/ports/connector.ts';
import { account } from '#domain/account.ts';
import { accountIdOf } from '#domain/ids.ts';
import { connectable, rulesOf } from '#domain/platforms/index.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { Platform } from '#schemas/common.ts';
import { liveNetworksOf } from '#services/api/call/deps.ts';
import { errors } from '#services/api/call/errors.ts';
import { alertOf, escapeHtml, page } from '#services/shell/page.ts';
import { show, tooLate } from '../links.ts';
import { attemptOf, keepAttempt, type OpenAttempt, showEnded } from './attempts.ts';
import { connectAccount } from './connect-account.ts';
import { fieldsOf } from './form.ts';
import type { OpenInvite } from './open-invite.ts';
import { goOrShow } from './show-invite.ts';
import { type InviteTools, refuse } from './tools.ts';

const nameOf = ({ username, displayName, externalId }: ConnectedProfile): string => {
  const known = [displayName, username === null ? null : `@${username}`].filter((one) => one !== null);
  return known.length === 0 ? externalId : known.join(', ');
};

/** Places of accounts in the order in which they were offered. */
type Places = ReadonlySet<number>;

/** What of the choice the guest asks for. */
interface View {
  /** Words by which the guest looks for accounts; empty: all. */
  readonly query: string;
  /** From 0; it may lie beyond the last. */
  readonly page: number;
  readonly chosen: Places;
}

/** A page of what was found. */
interface Shown {
  readonly page: number;
  /** Places of the accounts on it. */
  readonly here: readonly number[];
  /** Accounts on all pages. */
  readonly found: number;
}

const perPage = 50;
/** A person of an agency may have more pages than one can tick; of more than these the guest is told. */
const maxOffered = 2_000;
const longestQuery = 200;

type KeptChoice = {
  readonly accounts: readonly OfferedAccount[];
  readonly timezone: string | null;
  /** How many the network offered. */
  readonly offered: number;
  /** The login has more than were offered. */
  readonly isCut?: boolean;
};

const holders: Readonly<Record<NonNullable<OfferedAccount['holder']>, string>> = {
  person: 'a person',
  page: 'a page',
  organization: 'an organization',
  channel: 'a channel',
};

/** @param isConnected of this client already */
const line = (
  { platform, profile, holder, obstacle }: OfferedAccount,
  at: number,
  chosen: Places,
  isConnected: boolean,
): string => {
  const notes = [
    ...(platform === undefined ? [] : [rulesOf(platform).name]),
    ...(holder === undefined ? [] : [holders[holder]]),
    ...(obstacle === undefined ? [] : [obstacle]),
    ...(isConnected ? ['connected already; choose it to renew the permission'] : []),
  ];
  const small = notes.length === 0 ? '' : ` <small>${escapeHtml(notes.join('; '))}</small>`;
  const words = `<span><bdi>${escapeHtml(nameOf(profile))}</bdi>${small}</span>`;
  if (obstacle !== undefined) return `<p class="tick">${words}</p>`;
  const checked = chosen.has(at) ? ' checked' : '';
  return `<label class="tick"><input type="checkbox" name="account" value="${at}"${checked}> ${words}</label>`;
};

const pageOf = ({ accounts }: KeptChoice, { query, page }: View): Shown => {
  const wanted = query.normalize('NFKC').toLowerCase();
  const found = [...accounts.entries()].flatMap(([at, { profile }]) => {
    const text = `${nameOf(profile)} ${profile.externalId}`.normalize('NFKC').toLowerCase();
    return text.includes(wanted) ? [at] : [];
  });
  const last = Math.max(0, Math.ceil(found.length / perPage) - 1);
  const shown = Math.min(Math.max(page, 0), last);
  return { page: shown, here: found.slice(shown * perPage, (shown + 1) * perPage), found: found.length };
};

/** What the guest is told of accounts of the login that are not here. */
const missing = ({ accounts: { length }, offered, isCut = false }: KeptChoice): string => {
  if (offered <= length && !isCut) return '';
  const has = isCut ? `more than ${offered}` : String(offered);
  const here = length === 1 ? 'the first is here' : `the first ${length} are here`;
  return `<p class="soft">The login has ${has} ${has === 'more than 1' ? 'account' : 'accounts'}; only ${here}.</p>`;
};

/** The search, and the way through the pages, of a choice that does not fit on one. */
const way = (kept: KeptChoice, { query, chosen }: View, { page, here, found }: Shown): string => {
  if (kept.accounts.length <= perPage) return '';
  const first = page * perPage;
  const away = [...chosen].filter((at) => !here.includes(at));
  const button = (go: string, words: string) => `<button class="other" name="go" value="${go}">${words}</button>`;
  const counted = found === 0 ? 'None has this in its name.' : `${first + 1} to ${first + here.length} of ${found}.`;
  return [
    `<label for="query">Look for a name</label><input id="query" name="query" value="${escapeHtml(query)}" maxlength="${longestQuery}" autocomplete="off">`,
    button('search', 'Search'),
    `<input type="hidden" name="asked" value="${escapeHtml(query)}"><input type="hidden" name="page" value="${page}"><input type="hidden" name="chosen" value="${away.join(',')}">`,
    `<p class="soft">${counted}${away.length === 0 ? '' : ` ${away.length} more chosen on other pages.`}</p>`,
    '<p class="choices">',
    ...(page > 0 ? [button('back', 'Page before')] : []),
    ...(first + perPage < found ? [button('next', 'Next page')] : []),
    '</p>',
  ].join('\n');
};

/** Several accounts of one login. */
const choicePage = (choice: {
  readonly open: Pick<OpenInvite, 'clientName' | 'path'>;
  readonly platform: Platform;
  readonly kept: KeptChoice;
  readonly view: View;
  readonly shown: Shown;
  /** Places of those that the client has already. */
  readonly connected: Places;
  /** Why the choice was refused. */
  readonly words: string | null;
}): string => {
  const { open, platform, kept, view, shown, connected, words } = choice;
  const networks = new Set(kept.accounts.map((one) => rulesOf(one.platform ?? platform).name));
  const names = [...networks].join(' and ');
  const name = escapeHtml(names);
  const title = `Choose accounts of ${names}`;
  const lines = shown.here.flatMap((at) => {
    const account = kept.accounts[at];
    return account === undefined ? [] : [line(account, at, view.chosen, connected.has(at))];
  });
  const html = `<h1>Connect to <bdi>${escapeHtml(open.clientName)}</bdi></h1>
<form method="post">
<fieldset><legend>Which accounts of ${name}?</legend>
${alertOf(words)}
${way(kept, view, shown)}
${missing(kept)}
${lines.join('\n')}
<button type="submit">Connect these accounts</button>
</fieldset></form>
<p><a href="${escapeHtml(open.path)}">Start again</a></p>`;
  return page(words === null ? title : `Not connected: ${title}`, html);
};

/**
 * Of an attempt that has led to accounts: connects the only one that the login has, or lets the guest choose. Answers where to
 * go next.
 */
export const connectOffered = async (
  tools: InviteTools,
  ctx: Context,
  { open, platform, kept: { timezone } }: OpenAttempt<{ readonly timezone: string | null }>,
  { accounts, isCut = false }: Pick<Extract<FinishedConsent, { readonly kind: 'accounts' }>, 'accounts' | 'isCut'>,
): Promise<string> => {
  if (accounts.length === 0) throw new BrokenInvariant('no account was offered');
  // One consent may be for several networks: those that the link is for, and that can be connected here.
  const asked = connectable(open.mode, open.state.platforms, liveNetworksOf(tools.deps));
  const offered = accounts.filter((one) => one.platform === undefined || asked.includes(one.platform));
  const [first] = offered;
  if (first === undefined) {
    throw refuse(`The login has no account of ${rulesOf(platform).name} to which we could post. Try another one.`);
  }
  if (offered.every(({ obstacle }) => obstacle !== undefined))
    throw refuse(`${nameOf(first.profile)}: ${first.obstacle}`);
  if (offered.length === 1 && !isCut) {
    await connectAccount(tools, ctx, open, { platform, timezone, ...first });
    return open.path;
  }
  const kept: KeptChoice = { accounts: offered.slice(0, maxOffered), timezone, offered: offered.length, isCut };
  return `/connect/choice/${await keepAttempt(tools, ctx, open, { kind: 'choice', platform, kept })}`;
};

const beginning: View = { query: '', page: 0, chosen: new Set() };

/** Read from the accounts' own streams, as the page of the link does: of one page alone. */
const connectedOf = async (
  { deps, patience }: InviteTools,
  { open, platform, kept }: OpenAttempt<KeptChoice>,
  { here }: Shown,
): Promise<Places> => {
  const load = async (at: number): Promise<readonly number[]> => {
    const { platform: own = platform, profile } = kept.accounts[at] ?? {};
    const id = accountIdOf(open.clientId, own, profile?.externalId ?? '');
    return (await deps.store.load(account, id)).state.status === 'connected' ? [at] : [];
  };
  return new Set((await within(patience.callMs, Promise.all(here.map(load)), tooLate)).flat());
};

const showChoice = async (
  tools: InviteTools,
  ctx: Context,
  choice: OpenAttempt<KeptChoice>,
  view: View,
  words: string | null,
): Promise<void> => {
  const { open, platform, kept } = choice;
  const shown = pageOf(kept, view);
  const connected = await connectedOf(tools, choice, shown);
  const html = choicePage({ open, platform, kept, view, shown, connected, words });
  show(ctx, words === null ? 200 : errors.validation_failed.status, html);
};

const choiceAt = (tools: InviteTools, ctx: Context, how: 'find' | 'take') =>
  attemptOf<KeptChoice>(tools, ctx, { kind: 'choice', token: ctx.params.token, how });

export const getChoice =
  (tools: InviteTools): Middleware =>
  async (ctx) => {
    const choice = await choiceAt(tools, ctx, 'find');
    return choice === null ? showEnded(ctx) : showChoice(tools, ctx, choice, beginning, null);
  };

/** What the form says. Ticks of other pages come in `chosen`. */
const viewOf = (form: URLSearchParams, { kept }: OpenAttempt<KeptChoice>): View & { readonly isOver: boolean } => {
  const said = [...form.getAll('account'), ...(form.get('chosen') ?? '').split(',')];
  const isOne = (at: number): boolean => kept.accounts[at] !== undefined && kept.accounts[at].obstacle === undefined;
  const chosen = new Set(
    said
      .filter((text) => /^\d{1,4}$/.test(text))
      .map(Number)
      .filter(isOne),
  );
  const query = (form.get('query') ?? '').trim().slice(0, longestQuery);
  const go = form.get('go');
  const page =
    Number(/^\d{1,4}$/.exec(form.get('page') ?? '')?.[0] ?? 0) + (go === 'next' ? 1 : go === 'back' ? -1 : 0);
  const isSame = query === (form.get('asked') ?? '') && go !== 'search';
  const isOver = go !== 'search' && go !== 'next' && go !== 'back';
  return { query, chosen, isOver, page: isSame ? page : 0 };
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
    const { isOver, ...view } = viewOf(await fieldsOf(ctx), shown);
    if (!isOver) return showChoice(tools, ctx, shown, view, null);
    if (view.chosen.size === 0) return showChoice(tools, ctx, shown, view, 'Choose at least one account.');
    const taken = await choiceAt(tools, ctx, 'take');
    if (taken === null) return showEnded(ctx);
    faultPoint('connect:after-choice');
    const { open, platform, kept } = taken;
    await goOrShow(tools, ctx, open, { platform, way: 'choice' }, async () => {
      for (const [at, one] of kept.accounts.entries()) {
        if (!view.chosen.has(at)) continue;
        await connectAccount(tools, ctx, open, { platform, timezone: kept.timezone, ...one });
        faultPoint('connect:between-choices');
      }
      return open.path;
    });
  };
