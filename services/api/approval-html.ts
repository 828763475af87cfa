import { rulesOf } from '#domain/platforms/index.ts';
import { maxComment, maxGuestName } from '#schemas/approval.ts';
import type { Platform } from '#schemas/common.ts';
import { alertOf, escapeHtml, expiry, page, timeOf } from './html.ts';

/** The page on which a guest decides about a post. It escapes every text that a person has typed. */

export interface ShownFile {
  readonly kind: string;
  /** Null: the file cannot be shown here. */
  readonly url: string | null;
  /** False: no browser can be relied on to show the file, so the page links to it. */
  readonly isShowable: boolean;
  /** The size keeps the place of the picture free until it is loaded. */
  readonly size: { readonly width: number; readonly height: number } | null;
  /** Of a video: the frame that stands for it. */
  readonly posterUrl: string | null;
  readonly altText: string | null;
  readonly name: string;
}

export interface ShownNetwork {
  readonly platform: Platform;
  readonly title: string | null;
  /** More than one: a thread. */
  readonly segments: readonly { readonly text: string; readonly files: readonly ShownFile[] }[];
  readonly firstComment: string | null;
  readonly isMadeWithAi: boolean;
  readonly targets: readonly {
    readonly account: string;
    readonly scheduledAt: string;
    readonly timezone: string;
    readonly isPast: boolean;
  }[];
}

export interface ShownApproval {
  readonly clientName: string;
  readonly mode: 'live' | 'test';
  readonly status: 'pending' | 'approved' | 'rejected' | 'changes_requested' | 'withdrawn';
  readonly comment: string | null;
  readonly networks: readonly ShownNetwork[];
  readonly expiresAt: string;
  readonly alert: string | null;
  /** What the guest typed, shown again beside the alert. */
  readonly typed: { readonly name: string; readonly comment: string };
}

type Segment = ShownNetwork['segments'][number];
type Target = ShownNetwork['targets'][number];

/** Accounts of one network that are shown; the rest are counted. */
const maxTargets = 20;

/** Networks that show the pictures above the words, as the card does. */
const picturesFirst: readonly Platform[] = ['instagram', 'tiktok', 'youtube', 'pinterest'];

const file = ({ kind, url, isShowable, size, posterUrl, altText, name }: ShownFile): string => {
  const words = altText === null || altText === '' ? null : escapeHtml(altText);
  // A screen reader has read the words as those of the picture.
  const caption = words === null ? '' : `<figcaption aria-hidden="true">Alt text: ${words}</figcaption>`;
  if (url === null) return `<p class="soft">File: ${escapeHtml(name)}</p>`;
  const address = escapeHtml(url);
  if (!isShowable) return `<p>File: <a href="${address}">${escapeHtml(name)}</a></p>`;
  const sized = size === null ? '' : ` width="${size.width}" height="${size.height}"`;
  if (kind === 'video') {
    const label = words ?? escapeHtml(`Video ${name}`);
    const poster = posterUrl === null ? '' : ` poster="${escapeHtml(posterUrl)}"`;
    return `<figure><video controls playsinline preload="metadata" src="${address}"${poster} aria-label="${label}"${sized}></video>${caption}</figure>`;
  }
  const alt = words ?? escapeHtml(`Picture without alt text: ${name}`);
  return `<figure><img src="${address}" alt="${alt}"${sized}>${caption}</figure>`;
};

const filesOf = ({ files }: Segment): string => {
  if (files.length === 0) return '';
  const isGrid = files.length > 1 && files.every(({ url, isShowable }) => url !== null && isShowable);
  return `<div class="files${isGrid ? ' many' : ''}">${files.map(file).join('\n')}</div>`;
};

/** `dir="auto"`: a text in Arabic or Hebrew runs from right to left, as it does on the network. */
const textOf = (text: string): string => (text === '' ? '' : `<p class="text" dir="auto">${escapeHtml(text)}</p>`);

const segmentOf = (one: Segment, platform: Platform, title: string | null): string => {
  const heading = title === null ? '' : `<p class="title" dir="auto">${escapeHtml(title)}</p>`;
  const words = `${heading}${textOf(one.text)}`;
  return picturesFirst.includes(platform) ? `${filesOf(one)}${words}` : `${words}${filesOf(one)}`;
};

/** Whether a post that is approved late still goes out depends on its settings, so the page promises no time that has passed. */
const due = ({ scheduledAt, timezone, isPast }: Target): string =>
  `${isPast ? 'was due' : 'goes out'} ${timeOf(scheduledAt, timezone)}`;
const accountOf = ({ account }: Target): string => `<bdi>${escapeHtml(account)}</bdi>`;

const accounts = (targets: readonly Target[]): string => {
  const [only, ...others] = targets;
  return only === undefined || others.length > 0 ? `${targets.length} accounts` : accountOf(only);
};

const goesOut = (targets: readonly Target[]): string => {
  const [only, ...others] = targets;
  if (only !== undefined && others.length === 0) return `<p>${due(only)}</p>`;
  const shown = targets.slice(0, maxTargets).map((one) => `<li>${accountOf(one)} ${due(one)}</li>`);
  const more = targets.length > maxTargets ? [`<li>and ${targets.length - maxTargets} more accounts</li>`] : [];
  return `<ul>\n${[...shown, ...more].join('\n')}\n</ul>`;
};

const network = ({ platform, title, segments, firstComment, isMadeWithAi, targets }: ShownNetwork): string => {
  const name = escapeHtml(rulesOf(platform).name);
  const parts = segments.map((one, at) => {
    const body = segmentOf(one, platform, at === 0 ? title : null);
    if (segments.length === 1) return body;
    return `<div class="part"><h3>Part ${at + 1} of ${segments.length}</h3>\n${body}</div>`;
  });
  const comment = firstComment === null ? '' : textOf(firstComment);
  return `<section class="card" aria-labelledby="on-${platform}">
<div class="head"><span class="badge ${platform}" aria-hidden="true">${name.slice(0, 1)}</span><div><h2 id="on-${platform}">${name}</h2>
<p class="soft">${accounts(targets)}</p></div></div>
${parts.join('\n')}
${comment === '' ? '' : `<div class="reply"><h3>First comment</h3>\n${comment}</div>`}
${isMadeWithAi ? '<p class="soft">Marked as made with AI.</p>' : ''}
<div class="goes">${goesOut(targets)}</div></section>`;
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
  const { clientName, mode, status, networks, expiresAt, alert } = shown;
  const isPending = status === 'pending';
  const parts = [
    '<p class="over">For approval</p>',
    `<h1>A post for <bdi>${escapeHtml(clientName)}</bdi></h1>`,
    ...(isPending ? [] : [refusal(shown)]),
    banner(shown),
    ...(mode === 'test' ? ['<p class="soft">This is a post in the sandbox: nothing leaves this service.</p>'] : []),
    ...networks.map(network),
    ...(isPending ? [form(shown)] : []),
    expiry(expiresAt),
  ];
  // A screen reader begins with the title.
  const [state] = statusWords[status];
  return page(`${alert === null ? state : 'Not sent'}: a post for ${clientName}`, parts.join('\n'));
};
