import type { Context } from 'koa';
import type { ErrorCode } from '#domain/codes.ts';
import { Rejection } from '#domain/decider.ts';
import { errors } from '#services/api/call/errors.ts';
import { logFailure, toProblem } from '#services/api/call/problems.ts';
import { stateOf } from '#services/api/http/every-request.ts';
import { TooManyAttempts } from '#services/auth/people/attempts.ts';
import type { Console } from './deps.ts';
import { StaleForm } from './forms.ts';
import { showPlain } from './show.ts';

/** Errors as pages for people, with the codes and statuses of the api. */

const words: Partial<Readonly<Record<ErrorCode, { readonly title: string; readonly text: string }>>> = {
  not_found: {
    title: 'There is no such page',
    text: 'The address may be mistyped, or what it showed is gone. A link that works once may have been used, may have expired, or was withdrawn: ask for a new one.',
  },
  role_required: {
    title: 'Your role does not allow it',
    text: 'An Owner or a Manager of the workspace can do this, or can give you another role.',
  },
  rate_limited: { title: 'Too many requests', text: 'Wait a moment, and try again.' },
  unavailable: { title: 'The service cannot answer now', text: 'Nothing of yours is lost. Try again in a moment.' },
  internal: {
    title: 'Something went wrong',
    text: 'The fault is ours. Try again; tell us the number below if it stays.',
  },
};

export const answerError = ({ deps }: Console, ctx: Context, error: unknown): void => {
  if (error instanceof StaleForm) {
    showPlain(ctx, {
      view: 'error',
      title: 'This form is out of date',
      status: 403,
      data: { text: 'Nothing was done. Open the page again and send the form from there.', correlationId: null },
    });
    return;
  }
  const { code, headers } = toProblem(error);
  const { correlationId } = stateOf(ctx);
  logFailure(deps, code, { correlationId, operation: undefined }, error);
  ctx.set(headers);
  if (error instanceof TooManyAttempts) ctx.set('Retry-After', String(error.seconds));
  const { status, title, about } = errors[code];
  const said = words[code] ?? { title, text: about };
  const text = error instanceof TooManyAttempts ? error.message : said.text;
  showPlain(ctx, {
    ...{ view: 'error', title: said.title, status },
    data: { text, correlationId: code === 'internal' ? correlationId : null },
  });
};

/** A form that was refused, in words for the person. */
export interface FormRefusal {
  readonly status: number;
  readonly alert: string;
}

/** Members of a body, as the pages call them. */
const fields: Readonly<Record<string, string>> = {
  name: 'The name',
  scopes: 'The list of what the key may do',
  expiresAt: 'The end',
  clientIds: 'The list of clients',
  email: 'The e-mail address',
  role: 'The role',
};

const isWhole = (code: ErrorCode): boolean => code === 'not_found' || code === 'unavailable' || code === 'internal';

/**
 * Carries out a form: what it gave, or why it was refused.
 * @throws what is no fault of the form, such as an id that does not exist
 */
export const attempt = async <T>(
  ctx: Context,
  work: () => Promise<T>,
): Promise<readonly [done: T, refused: null] | readonly [done: null, refused: FormRefusal]> => {
  try {
    return [await work(), null];
  } catch (error) {
    const { code, detail, errors: issues, headers } = toProblem(error);
    if (!(error instanceof Rejection) || isWhole(code)) throw error;
    ctx.set(headers);
    if (error instanceof TooManyAttempts) ctx.set('Retry-After', String(error.seconds));
    const said = issues
      .filter(({ message }) => message !== detail)
      .map(({ path, message }) => `${fields[path.split('/')[1] ?? ''] ?? `“${path}”`} ${message}.`);
    const alert = said.length > 0 ? said.join(' ') : (detail ?? errors[code].about);
    return [null, { status: errors[code].status, alert }];
  }
};

/** Null: done. */
export const refusalOf = async (ctx: Context, work: () => Promise<unknown>): Promise<FormRefusal | null> => {
  const [, refused] = await attempt(ctx, work);
  return refused;
};
