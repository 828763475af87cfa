import { mediaFailures } from '#domain/media-failures.ts';
import { failureCodes } from '#domain/platforms/failure-codes.ts';
import { publishFailures } from '#domain/publish-failures.ts';
import { reportFailures } from '#domain/report.ts';
import { type Category, categoryOf, errors, isErrorCode } from './errors.ts';
import { escapeHtml, page } from './html.ts';

/** A page of the catalogue. `status` is null for what a target, an asset or a run fails with: no answer carries it as its code. */
export interface ErrorPage {
  readonly code: string;
  readonly status: number | null;
  readonly category: Category | 'media' | 'target' | 'report';
  readonly title: string;
  readonly about: string;
}

const aboutFailures: Readonly<Record<string, string>> = {
  ...Object.fromEntries(publishFailures.map(({ code, message }) => [code, message])),
  ...failureCodes,
};

const pageOf =
  (category: ErrorPage['category'], title: string) =>
  ([code, about]: readonly [code: string, about: string]): ErrorPage => ({
    code,
    status: null,
    category,
    title,
    about,
  });

const ofMedia = Object.entries(mediaFailures).map(pageOf('media', 'A media asset, or one of its renditions, failed'));

const ofTarget = Object.entries(aboutFailures)
  .filter(([code]) => !isErrorCode(code) && !Object.hasOwn(mediaFailures, code))
  .map(pageOf('target', 'A target failed, or was refused by the gate'));

const ofReports = Object.entries(reportFailures).map(pageOf('report', 'A run of a report failed'));

/** The whole catalogue, in the order of `errors`. */
export const errorPages: readonly ErrorPage[] = [
  ...Object.entries(errors).map(([code, entry]) => ({ code, category: categoryOf(entry.status), ...entry })),
  ...ofTarget,
  ...ofMedia,
  ...ofReports,
];

/** An entry of the catalogue, for programs and for people. */

export const showError = ({ code, status, category, title, about }: ErrorPage, baseUrl: string) => ({
  object: 'error' as const,
  code,
  type: `${baseUrl}/errors/${code}`,
  status,
  category,
  title,
  about,
});

export const errorHtml = ({ code, status, title, about }: ErrorPage): string =>
  page(
    title,
    `<h1>${escapeHtml(title)}</h1>
<p><code>${escapeHtml(code)}</code>${status === null ? '' : ` · HTTP ${status}`}</p>
<p>${escapeHtml(about)}</p>`,
  );

export const exampleError = {
  object: 'error',
  code: 'not_found',
  type: 'https://api.example/v1/errors/not_found',
  status: 404,
  category: 'request',
  title: 'The resource does not exist',
  about: 'The API has no such path, or the path has an id that is unknown, malformed or of another workspace.',
};
