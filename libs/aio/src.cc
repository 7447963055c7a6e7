// The one translation unit that holds Asio's and Beast's compiled parts.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
