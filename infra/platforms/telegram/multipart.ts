import type { FileSlice, NetworkCall } from '#contracts/ports/network-http.ts';

/** A body of `multipart/form-data` (RFC 7578) whose files are read while they are sent. */

export interface FormFile {
  /** Name of the part. */
  readonly name: string;
  /** With an extension that fits the type; without quotes, controls and line ends. */
  readonly filename: string;
  readonly contentType: string;
  readonly slice: FileSlice;
}

export const multipart = (
  fields: readonly (readonly [name: string, value: string])[],
  files: readonly FormFile[],
  separator: string,
): { readonly contentType: string; readonly body: NetworkCall['body'] } => {
  const body: (Buffer | FileSlice)[] = [];
  let text = '';
  for (const [name, value] of fields) {
    text += `--${separator}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  }
  for (const { name, filename, contentType, slice } of files) {
    text += `--${separator}\r\ncontent-disposition: form-data; name="${name}"; filename="${filename}"\r\n`;
    text += `content-type: ${contentType}\r\n\r\n`;
    body.push(Buffer.from(text), slice);
    text = '\r\n';
  }
  body.push(Buffer.from(`${text}--${separator}--\r\n`));
  return { contentType: `multipart/form-data; boundary=${separator}`, body };
};
