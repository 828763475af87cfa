import { rulesOf } from '#domain/platforms/index.ts';
import { maxComment, maxGuestName } from '#schemas/approval.ts';
import type { Platform } from '#schemas/common.ts';
import { escapeHtml, page } from './html.ts';

/** The page on which a guest decides about a post. It escapes every text that a person has typed. */

export interface ShownFile {
  readonly kind: string;
  /** Null: the file cannot be shown here. */
  readonly url: string | null;
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
  readonly targets: readonly { readonly account: string; readonly scheduledAt: string; readonly timezone: string }[];
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

/** Accounts of one network that are shown; the rest are counted. */
const maxTargets = 20;

const when = ({ scheduledAt, timezone }: ShownNetwork['targets'][number]): string => {
  const words = new Intl.DateTimeFormat('en-GB', {
    ...{ dateStyle: 'full', timeStyle: 'short', timeZone: timezone },
  }).format(new Date(scheduledAt));
  return `<time datetime="${scheduledAt}">${escapeHtml(words)}</time> (${escapeHtml(timezone)})`;
};

const file = ({ kind, url, altText, name }: ShownFile): string => {
  const words = escapeHtml(altText ?? '');
  const caption = altText === null || altText === '' ? '' : `<figcaption>Alt text: ${words}</figcaption>`;
  if (url === null) return `<p>File: ${escapeHtml(name)}</p>`;
  const address = escapeHtml(url);
  if (kind === 'video') {
    const label = escapeHtml(`Video ${name}`);
    return `<figure><video controls preload="metadata" src="${address}" aria-label="${label}"></video>${caption}</figure>`;
  }
  if (kind !== 'image' && kind !== 'gif') return `<p>File: <a href="${address}">${escapeHtml(name)}</a></p>`;
  return `<figure><img src="${address}" alt="${words}">${caption}</figure>`;
};

const segment = ({ text, files }: ShownNetwork['segments'][number]): string =>
  `<div class="post">${text === '' ? '' : `<p class="text">${escapeHtml(text)}</p>`}${files.map(file).join('\n')}</div>`;

const network = ({ platform, title, segments, firstComment, isMadeWithAi, targets }: ShownNetwork): string => {
  const shown = targets.slice(0, maxTargets).map((one) => `<li>${escapeHtml(one.account)}: ${when(one)}</li>`);
  const more = targets.length > maxTargets ? `<li>and ${targets.length - maxTargets} more accounts</li>` : '';
  const parts = segments.map((one, at) =>
    segments.length === 1 ? segment(one) : `<h3>Part ${at + 1} of ${segments.length}</h3>\n${segment(one)}`,
  );
  return `<section aria-labelledby="on-${platform}"><h2 id="on-${platform}">${escapeHtml(rulesOf(platform).name)}</h2>
${title === null ? '' : `<p>Title: <strong>${escapeHtml(title)}</strong></p>`}
${parts.join('\n')}
${firstComment === null ? '' : `<p>First comment:</p>\n<div class="post"><p class="text">${escapeHtml(firstComment)}</p></div>`}
${isMadeWithAi ? '<p>Marked as made with AI.</p>' : ''}
<ul>
${shown.join('\n')}${more}
</ul></section>`;
};

const statusWords: Readonly<Record<ShownApproval['status'], string>> = {
  pending: 'This post waits for your decision. Exactly what you see goes out, or nothing does.',
  approved: 'This post is approved: it goes out as you see it.',
  rejected: 'This post was rejected: it does not go out.',
  changes_requested: 'Changes were asked for: this post does not go out as it is.',
  withdrawn: 'This post was changed or canceled after the link was made. Ask for a new link.',
};

const form = ({ typed }: ShownApproval): string => `<form method="post">
<fieldset><legend>Your decision</legend>
<label for="name">Your name</label>
<input id="name" name="name" required maxlength="${maxGuestName}" autocomplete="name" value="${escapeHtml(typed.name)}">
<label for="comment">Comment (needed unless you approve)</label>
<textarea id="comment" name="comment" rows="4" maxlength="${maxComment}">${escapeHtml(typed.comment)}</textarea>
<button type="submit" name="decision" value="approve">Approve</button>
<button type="submit" name="decision" value="request_changes" class="other">Ask for changes</button>
<button type="submit" name="decision" value="reject" class="other">Reject</button>
</fieldset></form>`;

export const approvalPage = (shown: ShownApproval): string => {
  const { clientName, mode, status, comment, networks, expiresAt, alert } = shown;
  const parts = [
    `<h1>A post for ${escapeHtml(clientName)}</h1>`,
    ...(alert === null ? [] : [`<p class="alert" role="alert">${escapeHtml(alert)}</p>`]),
    `<p>${statusWords[status]}</p>`,
    ...(comment === null ? [] : [`<p>Comment: ${escapeHtml(comment)}</p>`]),
    ...(mode === 'test' ? ['<p>This is a post in the sandbox: nothing leaves this service.</p>'] : []),
    ...networks.map(network),
    ...(status === 'pending' ? [form(shown)] : []),
    `<p><small>This link works until <time datetime="${expiresAt}">${expiresAt.slice(0, 16).replace('T', ' ')} UTC</time>.</small></p>`,
  ];
  return page(`A post for ${clientName}`, parts.join('\n'));
};
