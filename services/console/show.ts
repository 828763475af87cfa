import type { Context } from 'koa';
import { tenantIdOf } from '#domain/ids.ts';
import { isAtLeast } from '#domain/roles.ts';
import type { Role } from '#schemas/common.ts';
import { stateOf } from '#services/api/http/every-request.ts';
import { show } from '#services/pages/links.ts';
import { icon } from '#services/shell/page.ts';
import type { Visit, Visitor } from './deps.ts';
import { headersFor, type PagePolicy, style } from './style.ts';
import { render } from './views.ts';
import { modeName, roleShown, when } from './words.ts';

/** Answers with a page of a template, in the frame that all pages have. */

export interface Shown extends PagePolicy {
  /** Name of the template. */
  readonly view: string;
  readonly title: string;
  /** Default 200. */
  readonly status?: number;
  /** Why a form was refused. It takes the focus. */
  readonly alert?: string | null;
  /** What was done. */
  readonly notice?: string | null;
  readonly data?: object;
}

interface Place {
  readonly href: string;
  readonly label: string;
  /** The least role that may see it; null: everybody, also a member of no workspace. */
  readonly from: Role | null;
}

const places: readonly Place[] = [
  { href: '/console', label: 'Home', from: 'viewer' },
  { href: '/team', label: 'Team', from: 'viewer' },
  { href: '/developers', label: 'Developers', from: 'manager' },
  { href: '/apps', label: 'Apps', from: 'viewer' },
  { href: '/security', label: 'Security', from: null },
];

const placesFor = (visitor: Visitor | null): readonly Place[] => {
  if (visitor === null) return [];
  const role = visitor.membership?.role;
  return places.filter(({ from }) => from === null || (role !== undefined && isAtLeast(role, from)));
};

const placeOf = ({ membership, session }: Visitor) =>
  membership === null
    ? null
    : {
        workspace: membership.name,
        mode: session.mode,
        modeName: modeName(session.mode),
        role: roleShown(membership.role),
      };

/** @param path of the request, for the mark at its place in the bar */
const frameOf = (visitor: Visitor | null, path: string, formToken: string) => ({
  style,
  icon,
  formToken,
  when,
  who: visitor === null ? null : { name: visitor.name, email: visitor.email },
  place: visitor === null ? null : placeOf(visitor),
  places: placesFor(visitor).map((one) => ({ ...one, isHere: path === one.href || path.startsWith(`${one.href}/`) })),
});

/**
 * What the form before this page did, by `?done=` in its address: one of the notices of the page, since anybody can write
 * an address. Null where a form was just refused.
 */
export const noticeOf = (
  { ctx }: Pick<Visit, 'ctx'>,
  notices: Readonly<Record<string, string>>,
  refused: object | null,
): string | null => {
  const done = String(ctx.query.done ?? '');
  return refused === null && Object.hasOwn(notices, done) ? (notices[done] ?? null) : null;
};

/** A page for nobody in particular, such as one that tells of an error. */
export const showPlain = (ctx: Context, shown: Shown): void => write(ctx, shown, frameOf(null, ctx.path, ''));

export const showPage = ({ ctx, visitor, formToken }: Visit, shown: Shown): void => {
  const { membership = null, session } = visitor ?? {};
  if (membership !== null && session !== undefined) {
    stateOf(ctx).pageOf = tenantIdOf(membership.workspaceId, session.mode);
  }
  write(ctx, shown, frameOf(visitor, ctx.path, formToken));
};

const write = (ctx: Context, shown: Shown, frame: ReturnType<typeof frameOf>): void => {
  const { view, title, status = 200, alert = null, notice = null, data = {}, ...policy } = shown;
  const heading = alert === null ? title : `Not done: ${title}`;
  const html = render(view, {
    ...data,
    frame: { ...frame, title: heading, script: policy.script === true },
    alert,
    notice,
  });
  show(ctx, status, html, headersFor(policy));
};

/** After a form: the browser gets the page anew, so that a reload sends nothing again. */
export const goTo = (ctx: Context, to: string): void => {
  ctx.status = 303;
  ctx.set(headersFor({}));
  ctx.set('Location', to);
  ctx.type = 'text/html';
  ctx.body = '';
};
