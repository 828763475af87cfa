import { overrideRules, rulesOf } from '#domain/platforms/index.ts';
import type { ShownItem } from '#domain/shown-content.ts';
import { maxComment, maxGuestName } from '#schemas/approval.ts';
import type { Platform } from '#schemas/common.ts';
import type { CoveredTarget, ShownContent } from '#services/api/approvals/shown.ts';
import { alertOf, escapeHtml, expiry, page, timeOf } from '#services/shell/page.ts';

/** The page on which a guest decides about a post. It escapes every text that a person has typed. */

export interface ShownApproval {
  readonly clientName: string;
  readonly mode: 'live' | 'test';
  readonly status: 'pending' | 'approved' | 'rejected' | 'changes_requested' | 'withdrawn';
  readonly comment: string | null;
  /** Null: the request was withdrawn. */
  readonly post: ShownContent | null;
  readonly expiresAt: string;
  readonly alert: string | null;
  /** What the guest typed, shown again beside the alert. */
  readonly typed: { readonly name: string; readonly comment: string };
}

/** Networks that get the same text and the same files. */
interface Card extends ShownContent {
  readonly platforms: readonly Platform[];
  /** The items of each file and account. */
  readonly byId: ReadonlyMap<string | null, readonly ShownItem[]>;
}

/** Accounts of one card that stand open; the rest unfold. */
const maxTargets = 20;

/** Networks that show the pictures above the words, as the card does. */
const picturesFirst: readonly Platform[] = ['instagram', 'tiktok', 'youtube', 'pinterest'];

const namesOf = (platforms: readonly Platform[]): string =>
  platforms.map((one) => escapeHtml(rulesOf(one).name)).join(', ');

const isOn = ({ platforms }: Pick<Card, 'platforms'>, item: ShownItem): boolean =>
  item.platforms.some((one) => platforms.includes(one));

/** Where an item is for some networks of a card alone, it says which. */
const on = ({ platforms }: Pick<Card, 'platforms'>, item: ShownItem): string =>
  platforms.every((one) => item.platforms.includes(one))
    ? ''
    : ` on ${namesOf(item.platforms.filter((one) => platforms.includes(one)))}`;

/** `dir="auto"`: a text in Arabic or Hebrew runs from right to left, as it does on the network. */
const textOf = (text: string): string => (text === '' ? '' : `<p class="text" dir="auto">${escapeHtml(text)}</p>`);

const wordsOfFile = (card: Card, id: string | null) => {
  const of = (kind: ShownItem['kind']) => (card.byId.get(id) ?? []).filter((one) => one.kind === kind);
  const altTexts = of('alt_text').map((one) => `Alt text${on(card, one)}: ${escapeHtml(one.value)}`);
  const bytes = of('bytes').map(({ value }) => escapeHtml(value));
  return { alt: of('alt_text')[0]?.value ?? null, altTexts, bytes };
};

const fileOf = (card: Card, { id, value: name, position }: ShownItem): string => {
  const file = card.files.get(id ?? '');
  const { alt, altTexts, bytes } = wordsOfFile(card, id);
  // A screen reader has read the words as those of the picture.
  const hidden = altTexts.map((one) => `<figcaption aria-hidden="true">${one}</figcaption>`).join('');
  const facts = `<figcaption>${position === null ? '' : `${position}. `}${escapeHtml(name)}: ${bytes.join(' ')}</figcaption>`;
  if (file === undefined || file.url === null) {
    const words = [...altTexts, ...bytes].map((one) => `<br><small>${one}</small>`).join('');
    return `<p class="soft">File: ${escapeHtml(name)}${words}</p>`;
  }
  const address = escapeHtml(file.url);
  const { kind, isShowable, size, posterUrl } = file;
  if (!isShowable) {
    const words = [...altTexts, ...bytes].map((one) => `<br><small>${one}</small>`).join('');
    return `<p>File: <a href="${address}">${escapeHtml(name)}</a>${words}</p>`;
  }
  const sized = size === null ? '' : ` width="${size.width}" height="${size.height}"`;
  if (kind === 'video') {
    const label = escapeHtml(alt ?? `Video ${name}`);
    const poster = posterUrl === null ? '' : ` poster="${escapeHtml(posterUrl)}"`;
    return `<figure><video controls playsinline preload="metadata" src="${address}"${poster} aria-label="${label}"${sized}></video>${hidden}${facts}</figure>`;
  }
  const words = escapeHtml(alt ?? `Picture without alt text: ${name}`);
  return `<figure><img src="${address}" alt="${words}"${sized}>${hidden}${facts}</figure>`;
};

const filesOf = (card: Card, files: readonly ShownItem[]): string => {
  if (files.length === 0) return '';
  const isShown = ({ id }: ShownItem): boolean => card.files.get(id ?? '')?.isShowable === true;
  const isGrid = files.length > 1 && files.every(isShown);
  return `<div class="files${isGrid ? ' many' : ''}">${files.map((one) => fileOf(card, one)).join('\n')}</div>`;
};

const segmentOf = (card: Card, items: readonly ShownItem[]): string => {
  const of = (kind: ShownItem['kind']) => items.filter((one) => one.kind === kind);
  const titles = of('title').map(({ value }) => `<p class="title" dir="auto">${escapeHtml(value)}</p>`);
  const words = [...titles, ...of('text').map(({ value }) => textOf(value))].join('');
  const files = filesOf(card, of('file'));
  return card.platforms.every((one) => picturesFirst.includes(one)) ? `${files}${words}` : `${words}${files}`;
};

const segmentsOf = (card: Card): string => {
  const items = card.items.filter(({ kind }) => bodyKinds.includes(kind));
  const parts = [...Map.groupBy(items, ({ part }) => part ?? 1)].sort(([a], [b]) => a - b);
  if (parts.length < 2) return segmentOf(card, items);
  return parts
    .map(([part, of]) => `<div class="part"><h3>Part ${part} of ${parts.length}</h3>\n${segmentOf(card, of)}</div>`)
    .join('\n');
};

/** A key in words: `quoteTweetId` as Quote tweet id. */
const inWords = (key: string): string => {
  const words = key.replace(/([a-z])([A-Z])/g, (_all, a: string, b: string) => `${a} ${b.toLowerCase()}`);
  return escapeHtml(words.slice(0, 1).toUpperCase() + words.slice(1));
};

const labels: Readonly<Record<Exclude<ShownItem['kind'], 'setting'>, string>> = {
  ...{ account: 'Account', text: 'Text', title: 'Title', file: 'File', alt_text: 'Alt text', cover: 'Cover' },
  ...{ cover_frame: 'Frame as cover', first_comment: 'First comment', ai_label: 'Made with AI', bytes: 'Bytes' },
};

const labelOf = ({ kind, key }: ShownItem): string => (kind === 'setting' ? inWords(key ?? '') : labels[kind]);

/** What a setting does, in one sentence. */
const aboutOf = ({ kind, key, platforms: [platform] }: ShownItem): string => {
  if (kind !== 'setting' || key === null || platform === undefined) return '';
  const rules = overrideRules(platform);
  const [about = ''] = (Object.hasOwn(rules, key) ? (rules[key]?.about ?? '') : '').split(/(?<=\.) /);
  return about === '' ? '' : `<br><small>${escapeHtml(about.replaceAll('`', ''))}</small>`;
};

const settingOf = (card: Card, one: ShownItem): string => {
  const value = one.kind === 'cover' ? filesOf(card, [one]) : textOf(one.value);
  return `<li><strong>${labelOf(one)}${on(card, one)}</strong>${aboutOf(one)}${value}</li>`;
};

/** Whether a post that is approved late still goes out depends on its settings, so the page promises no time that has passed. */
const due = ({ scheduledAt, timezone, isPast }: CoveredTarget): string =>
  `${isPast ? 'was due' : 'goes out'} ${timeOf(scheduledAt, timezone)}`;

const accounts = ({ targets }: Card): string => {
  const [only, ...others] = targets;
  return only === undefined || others.length > 0
    ? `${targets.length} accounts`
    : `<bdi>${escapeHtml(only.account)}</bdi>`;
};

const goesOut = ({ targets, platforms }: Card): string => {
  const [only, ...others] = targets;
  if (only !== undefined && others.length === 0) return `<p>${due(only)}</p>`;
  const line = (one: CoveredTarget): string => {
    const where = platforms.length > 1 ? ` on ${namesOf([one.platform])}` : '';
    return `<li><bdi>${escapeHtml(one.account)}</bdi>${where} ${due(one)}</li>`;
  };
  const list = (some: readonly CoveredTarget[]): string => `<ul>\n${some.map(line).join('\n')}\n</ul>`;
  const rest = targets.slice(maxTargets);
  const more =
    rest.length === 0 ? '' : `<details><summary>${rest.length} more accounts</summary>${list(rest)}</details>`;
  return `${list(targets.slice(0, maxTargets))}${more}`;
};

const bodyKinds: readonly ShownItem['kind'][] = ['text', 'title', 'file'];
const settingKinds: readonly ShownItem['kind'][] = ['cover', 'cover_frame', 'setting', 'ai_label'];

/** Networks with equal texts and files share a card; in it, each setting says for which of them it is. */
const cardsOf = ({ items, files, targets }: ShownContent): readonly Card[] => {
  const sent = items.filter(({ unsent }) => unsent === null);
  const bodies = sent.filter(({ kind }) => bodyKinds.includes(kind));
  const platforms = [...new Set(targets.map(({ platform }) => platform))];
  const gets = (platform: Platform): string =>
    bodies.flatMap((one, at) => (one.platforms.includes(platform) ? [at] : [])).join();
  return [...Map.groupBy(platforms, gets).values()].map((alike) => {
    const own = sent.filter((one) => isOn({ platforms: alike }, one));
    return {
      ...{ platforms: alike, files, items: own, byId: Map.groupBy(own, ({ id }) => id) },
      targets: targets.filter(({ platform }) => alike.includes(platform)),
    };
  });
};

/** Its networks want authors to read what they agree to, above the button. */
const agreementsOf = ({ platforms, items }: Card): string =>
  platforms
    .flatMap((platform) => {
      const { agreedTo, name } = rulesOf(platform);
      const ofNetwork = items.filter(({ kind, platforms: some }) => kind === 'setting' && some.includes(platform));
      const overrides = Object.fromEntries(ofNetwork.map(({ key, value }) => [key ?? '', value === 'true' || value]));
      const terms = (agreedTo?.(overrides) ?? []).map(
        (one) => `<a href="${escapeHtml(one.url)}" rel="noreferrer">${escapeHtml(one.name)}</a>`,
      );
      return terms.length === 0
        ? []
        : [`<p class="soft">By posting, you agree to ${name}’s ${terms.join(' and ')}.</p>`];
    })
    .join('\n');

const cardOf = (card: Card): string => {
  const [first] = card.platforms;
  const badges = card.platforms.map(
    (one) => `<span class="badge ${one}" aria-hidden="true">${escapeHtml(rulesOf(one).name).slice(0, 1)}</span>`,
  );
  const comments = card.items
    .filter(({ kind }) => kind === 'first_comment')
    .map((one) => `<div class="reply"><h3>First comment${on(card, one)}</h3>\n${textOf(one.value)}</div>`);
  const settings = card.items.filter(({ kind }) => settingKinds.includes(kind)).map((one) => settingOf(card, one));
  return `<section class="card" aria-labelledby="on-${first}">
<div class="head">${badges.join('')}<div><h2 id="on-${first}">${namesOf(card.platforms)}</h2>
<p class="soft">${accounts(card)}</p></div></div>
${segmentsOf(card)}
${comments.join('\n')}
<ul class="rows">${settings.join('\n')}</ul>
${agreementsOf(card)}
<div class="goes">${goesOut(card)}</div></section>`;
};

/** What the decision covers as well, although nobody outside gets it. */
const unsentOf = ({ items }: ShownContent): string => {
  const rows = items.flatMap((one) => {
    if (one.unsent === null) return [];
    const where = one.platforms.length === 0 ? '' : ` on ${namesOf(one.platforms)}`;
    return [
      `<li><strong>${labelOf(one)}${where}</strong><br><small>${escapeHtml(one.unsent)}</small>${textOf(one.value)}</li>`,
    ];
  });
  if (rows.length === 0) return '';
  return `<section class="card" aria-labelledby="unsent"><h2 id="unsent">Not sent</h2>
<p class="soft">This is stored with the post, and does not go out by this decision.</p>
<ul class="rows">${rows.join('\n')}</ul></section>`;
};

const statusWords: Readonly<Record<ShownApproval['status'], readonly [title: string, words: string]>> = {
  pending: ['Waiting for you', 'This post waits for your decision. Exactly what you see goes out, or nothing does.'],
  approved: ['Approved', 'This post is approved: it goes out as you see it.'],
  rejected: ['Rejected', 'This post was rejected: it does not go out.'],
  changes_requested: ['Changes requested', 'Changes were asked for: this post does not go out as it is.'],
  withdrawn: ['No longer valid', 'This post was changed or canceled after the link was made. Ask for a new link.'],
};

const banner = ({ status, comment }: ShownApproval): string => {
  const [title, words] = statusWords[status];
  const said = comment === null ? '' : `\n<p>Comment:</p>\n${textOf(comment)}`;
  return `<div class="banner ${status}"><strong>${title}</strong><p>${words}</p>${said}</div>`;
};

/** There is no form any more: what the guest wrote is shown, so that they can send it by another way. */
const refusal = ({ alert, typed }: ShownApproval): string => {
  if (alert === null || typed.comment === '') return alertOf(alert);
  return `${alertOf(alert)}\n<div class="reply"><h2>Your comment, which was not sent</h2>\n${textOf(typed.comment)}</div>`;
};

/**
 * The first button is disabled: Enter in the field of the name presses the first button of a form, and would approve the
 * post before the guest has chosen.
 */
const form = ({ typed, alert }: ShownApproval): string => `<form method="post" class="card" aria-labelledby="decision">
<h2 id="decision">Your decision</h2>
${alertOf(alert)}
<button type="submit" disabled hidden>Choose below</button>
<label for="name">Your name</label>
<input id="name" name="name" required maxlength="${maxGuestName}" autocomplete="name" dir="auto" value="${escapeHtml(typed.name)}">
<label for="comment">Comment <span>(needed unless you approve)</span></label>
<textarea id="comment" name="comment" rows="4" maxlength="${maxComment}" dir="auto">
${escapeHtml(typed.comment)}</textarea>
<div class="choices"><button type="submit" name="decision" value="approve" class="yes">Approve</button>
<button type="submit" name="decision" value="request_changes" class="other">Ask for changes</button>
<button type="submit" name="decision" value="reject" class="no">Reject</button></div>
</form>`;

export const approvalPage = (shown: ShownApproval): string => {
  const { clientName, mode, status, post, expiresAt, alert } = shown;
  const isPending = status === 'pending';
  const parts = [
    '<p class="over">For approval</p>',
    `<h1>A post for <bdi>${escapeHtml(clientName)}</bdi></h1>`,
    ...(isPending ? [] : [refusal(shown)]),
    banner(shown),
    ...(mode === 'test' ? ['<p class="soft">This is a post in the sandbox: nothing leaves this service.</p>'] : []),
    ...(post === null ? [] : [...cardsOf(post).map(cardOf), unsentOf(post)]),
    ...(isPending ? [form(shown)] : []),
    expiry(expiresAt),
  ];
  // A screen reader begins with the title.
  const [state] = statusWords[status];
  return page(`${alert === null ? state : 'Not sent'}: a post for ${clientName}`, parts.join('\n'));
};
