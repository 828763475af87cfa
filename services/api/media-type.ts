/**
 * Checks the Content-Type of a JSON body. The code splits the text, because a pattern over optional blanks takes time
 * with the square of their number.
 */

const maxLength = 200;
const structured = /^application\/[\w.+-]+\+json$/;

const isUtf8 = (parameter: string): boolean => {
  const [name = '', value = '', ...more] = parameter.split('=').map((one) => one.trim());
  return name === 'charset' && more.length === 0 && (value === 'utf-8' || value === '"utf-8"');
};

/** `application/json` or `application/…+json`, with nothing but the charset UTF-8 behind it. */
export const isJsonType = (text: string): boolean => {
  if (text.length > maxLength) return false;
  const [type = '', ...parameters] = text.toLowerCase().split(';');
  const given = parameters.map((one) => one.trim()).filter((one) => one !== '');
  const essence = type.trim();
  return (essence === 'application/json' || structured.test(essence)) && given.length < 2 && given.every(isUtf8);
};
